"""The official TypeScript client, if it is installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixture; its tests are skipped where
`make test` found no Node.js to install it with.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from support import skips
from support.interpreters import output_of

FOLDER = Path(__file__).parents[2] / ".cache/clients"

TIMEOUT_S = 60
"""A program takes 1 s, but longer on a busy computer."""


RunModule = Callable[..., str]
"""Run the text of an ECMAScript module that may import the client; a second text is its standard input.
Return its output."""


@pytest.fixture(scope="session")
def run_module() -> RunModule:
    node = skips.find_node("the TypeScript client", FOLDER / "node_modules/@modelcontextprotocol/client")

    def run(text: str, given: str = "") -> str:
        command = [node, "--input-type=module", "--eval", text]
        return output_of(*command, cwd=FOLDER, input=given, timeout=TIMEOUT_S)

    return run
