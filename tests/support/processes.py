"""Processes that run functions of `support`, one after another, as an execution environment runs invocations.

They share nothing with this process or with one another but what their calls name, such as a table or a key.
"""

import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_testing import load_module

WITHIN_S: Final = 60

# A process is forked from one that has imported these, so it starts in milliseconds.
_FORKING: Final = get_context("forkserver")
_FORKING.set_forkserver_preload(["__main__", "mcp_roundtrip.aws.dynamodb", "mcp_roundtrip_testing"])


def new_process(variables: Mapping[str, str] | None = None) -> ProcessPoolExecutor:
    """Return an executor that runs all calls in one process with PATH and these environment variables."""
    given = {"PATH": os.environ["PATH"], **(variables or {})}
    return ProcessPoolExecutor(1, _FORKING, initializer=_set_variables, initargs=(given,))


def _set_variables(variables: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def invoke(app: Path, event: Any) -> Any:
    """Return the response of the function in a file to an event."""
    return load_module(app).handler(event, None)
