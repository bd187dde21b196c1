"""Collect garbage less often in a Lambda function, so that a cold start collects none.

What an initialization creates stays: modules, classes, schemas. With Python's default, dozens of collections
look for garbage among these objects, and take a twelfth of the CPU time of a cold start. Memory grows by
the garbage in reference cycles among THRESHOLD objects, some MB; other garbage is freed at once, as always.
"""

from __future__ import annotations

import gc
import os
from typing import Final

THRESHOLD: Final = 50_000
"""New containers until a collection. A server with one tool creates 38,000 up to its first response."""


def collect_rarely() -> None:
    """Set the threshold on Lambda, unless the function has set one that is higher, or 0 for never."""
    if "AWS_LAMBDA_RUNTIME_API" in os.environ and 0 < gc.get_threshold()[0] < THRESHOLD:
        gc.set_threshold(THRESHOLD)
