"""Count the functions that a function calls: a cost that is the same on every machine."""

import gc
import sys
from collections.abc import Callable
from types import FrameType


def count_function_calls(function: Callable[[], object]) -> int:
    """Return how many functions, in Python and in C, one call of `function` calls, without itself.

    The first call, which may fill caches, is not counted, nor is the garbage collection of what others left:
    finalizers and callbacks of weak references are functions, too.
    """
    function()
    calls = 0

    def profile(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()
    sys.setprofile(profile)
    try:
        function()
    finally:
        sys.setprofile(before)
        gc.enable()
    return calls - 2  # `function` and the function that ends the count
