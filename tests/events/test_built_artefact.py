"""Every sample event through the functions and the layer as `sam build` makes them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from mcp_roundtrip.local.sample_events import live
from mcp_roundtrip.local.samples import stable
from support.sam_build import ROOT, Built, sam_build
from support.sample_events import LIVE, STABLE, Invoke, environment, handler_of, unlike_the_table
from support.template import functions
from support.transformed import WORKER_OF

LOGICAL_IDS = {
    folder + ("_worker" if logical_id in WORKER_OF.values() else ""): logical_id
    for logical_id, folder in functions().items()
}


@contextmanager
def process(built: Built, function: str, variables: dict[str, str]) -> Iterator[Any]:
    """A process of the built function; what is yielded takes an event and returns the response."""
    reader, writer = os.pipe()
    script = ROOT / "tests/support/artefact_process.py"
    _, handler = handler_of(function)
    arguments = [built.function(LOGICAL_IDS[function]), handler, built.layer, writer]
    with (
        os.fdopen(reader) as responses,
        subprocess.Popen(
            [sys.executable, script, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            pass_fds=[writer],
            env={**variables, "PYTHONDONTWRITEBYTECODE": "1"},  # the build is shared, and read-only on Lambda
        ) as child,
    ):
        os.close(writer)
        assert child.stdin is not None

        def invoke(event: Any) -> Any:
            print(json.dumps(event), file=child.stdin, flush=True)
            return json.loads(responses.readline())

        yield invoke
        child.stdin.close()
    assert child.returncode == 0


@pytest.fixture(scope="module")
def invoke() -> Iterator[Invoke]:
    built = sam_build()
    with environment() as variables, ExitStack() as stack:
        handlers = {name: stack.enter_context(process(built, name, variables)) for name in LOGICAL_IDS}
        yield lambda function, event: handlers[function](event)


def test_every_sample_event_comes_to_what_the_table_says(invoke: Invoke) -> None:
    assert unlike_the_table(invoke, stable(), STABLE) == {}


def test_live_events_come_to_what_the_table_says(invoke: Invoke) -> None:
    assert unlike_the_table(invoke, live(invoke), LIVE) == {}
