"""The console in a browser: one server and one Chromium for all tests of a module.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixtures; its tests are skipped where
`make test` found no Node.js to install Chromium with.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_local import LocalApp, serve
from support.browser import FOLDER, Chromium

pytest_plugins = ["support.browser"]

PROGRAM = Path(__file__).with_name("console_browser.mjs")
APPLICATION = Path(__file__).parents[1] / "console/application/template.yaml"

Step = Sequence[Any]
"""A verb of console_browser.mjs and its arguments: ("fill", "location", "Hyderabad")."""


@dataclass(frozen=True)
class Visit:
    """What the steps of a visit saw, and what the browser complained about: errors, warnings, dialogs."""

    seen: list[Any]
    complaints: list[str]


Console = Callable[..., Visit]
"""Open the console at an address such as "#/tools/hostile" and take steps. Keyword: `options` of the
browser context of Playwright."""


@pytest.fixture(scope="module")
def console_app() -> Iterator[LocalApp]:
    with serve(APPLICATION, log=lambda line: None, watch_interval_s=0) as app:
        yield app


@pytest.fixture(scope="module")
def open_console(chromium: Chromium) -> Iterator[Callable[[str], Console]]:
    """Open the console of a server, by the URL of the console."""
    with start_browser(chromium) as ask:
        yield lambda root: console_of(ask, root)


@pytest.fixture(scope="module")
def console(console_app: LocalApp, open_console: Callable[[str], Console]) -> Console:
    assert console_app.console_url is not None
    return open_console(console_app.console_url)


def console_of(ask: Callable[[Any], Any], root: str) -> Console:
    """Return the console of a server, by the URL of the console, in a browser."""
    return lambda address, *steps, **more: _visit(ask, root + address, steps, more)


def _visit(ask: Callable[[Any], Any], url: str, steps: Sequence[Step], more: Mapping[str, Any]) -> Visit:
    answer = ask({"url": url, "steps": steps, **more})
    assert "error" not in answer, answer["error"]
    return Visit(answer["seen"], answer["complaints"])


@contextmanager
def start_browser(chromium: Chromium) -> Iterator[Callable[[Any], Any]]:
    """Start a browser that answers visits until the block ends."""
    with subprocess.Popen(
        chromium.command(PROGRAM.read_text()),
        cwd=FOLDER,
        env=chromium.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def ask(question: Any) -> Any:
            stdin.write(json.dumps(question) + "\n")
            stdin.flush()
            line = stdout.readline()
            assert line, "the browser has ended"
            return json.loads(line)

        yield ask
        stdin.close()
        process.wait(20)
