"""The console in a browser: one server and one Chromium for all tests of a module.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixtures; its tests are skipped where
`make test` found no Node.js to install Chromium with.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.console import console as console_server
from mcp_roundtrip_tools.console.console import CONTENT_TYPES, with_security_headers
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.messages import Response
from support.browser import RunProgram
from support.served_application import serve

pytest_plugins = ["support.browser"]

PROGRAM = Path(__file__).with_name("console_browser.mjs")
APPLICATION = Path(__file__).parents[1] / "tools/console/application/template.yaml"

Step = Sequence[Any]
"""A verb of console_browser.mjs and its arguments: ("fill", "location", "Hyderabad")."""

CALL: Step = ("click", "Call")
ASKED: Step = ("wait", ".questions")
DONE: Step = ("wait", ".result")
RECORDED: Step = ("wait", ".round:last-child .environment")
FOCUSED: Step = ("focused",)
AXE: Step = ("axe",)
FITS: Step = ("fits",)
DECLARE_NOTHING: Step = (
    "evaluate",
    "document.querySelectorAll('.client :checked[type=checkbox]').forEach((box) => box.click())",
)


Console = Callable[..., list[Any]]
"""Open the console at an address such as "#/tools/hostile" and take steps; return what these saw.

The visit fails if the browser complains: of errors, warnings, dialogs. With `refused`, it may complain of
requests without an answer, and of answers that are errors. `options` are those of the browser context of
Playwright.
"""

REFUSED = "Failed to load resource"


@pytest.fixture(scope="module")
def console_app() -> Iterator[LocalApp]:
    with serve(APPLICATION, watch_interval_s=0) as app:
        yield app


@pytest.fixture(scope="session")
def open_console(run_in_browser: RunProgram) -> Iterator[Callable[[str], Console]]:
    """Open the console of a server, by the URL of the console."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(console_server, "with_security_headers", with_kept_scripts)
        yield partial(console_of, run_in_browser)


def with_kept_scripts(response: Response) -> Response:
    """Return the response with the headers of the console. The visits of a server load each script once."""
    found = with_security_headers(response)
    if dict(response.headers)["content-type"] != CONTENT_TYPES[".js"]:
        return found
    kept = [header for header in found.headers if header[0] != "cache-control"]
    return Response(found.status, (*kept, ("cache-control", "max-age=3600")), found.body)


@pytest.fixture(scope="module")
def console(console_app: LocalApp, open_console: Callable[[str], Console]) -> Console:
    assert console_app.console_url is not None
    return open_console(console_app.console_url)


def console_of(run: RunProgram, root: str) -> Console:
    """Return the console of a server, by the URL of the console, in a browser."""

    def visit(address: str, *steps: Step, refused: bool = False, **more: Any) -> list[Any]:
        found = run(PROGRAM, {"url": root + address, "steps": steps, **more})
        complaints = [each for each in found["complaints"] if not (refused and each.startswith(REFUSED))]
        assert not complaints, complaints
        seen: list[Any] = found["seen"]
        return seen

    return visit
