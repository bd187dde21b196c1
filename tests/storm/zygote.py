"""The process that forks worker processes, so that they need not import anything."""

import gc
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

# What the runtime's client imports, except its C++ part, which reads its address when it is imported.
import awslambdaric.lambda_runtime_log_utils  # type: ignore[import-untyped]
import awslambdaric.lambda_runtime_marshaller  # type: ignore[import-untyped]  # noqa: F401

from storm import function


def fork_worker(*addresses: str) -> int:
    """Start a worker process with three addresses (`function.run`), and return its process id."""
    return _zygote().submit(_fork, *addresses).result()


@cache
def _zygote() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), initializer=_start)


def _start() -> None:
    function.warm_up()
    gc.disable()
    gc.freeze()  # otherwise collections would copy the memory that processes share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes children that have exited


def _fork(*addresses: str) -> int:
    if pid := os.fork():
        return pid
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        function.run(*addresses)
    finally:
        os._exit(1)
