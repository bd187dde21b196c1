"""The question app in a browser, inside a host made with the official `app-bridge`, if both are installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixture; its tests are skipped where
`make test` found no Node.js to install them with.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip.server.features_and_app_views import read_question_app
from support import skips, stored_tasks
from support.browser import RunProgram

pytest_plugins = ["support.browser"]

MODULES = Path(__file__).parents[2] / ".cache/programs/node_modules"
PROGRAM = Path(__file__).with_name("question_app.mjs")
PAGES = {
    "host": Path(__file__).with_name("question_app.html"),
    "sandbox": Path(__file__).with_name("question_app_sandbox.html"),
}

META = "mcp-roundtrip/questions"

Step = Sequence[Any]
"""A verb of question_app.mjs and its arguments: ("fill", "Virtual CPUs", "4")."""

Log = Mapping[str, list[Any]]
"""What the host received: calls, messages, contexts, links, heights, complaints of the browser, values."""

Show = Callable[..., Log]
"""Takes steps in the view. Keywords: `answers` to its calls, `server`, `refused`, `theme` and the rest of
question_app.html."""


def view() -> str:
    return read_question_app()


@pytest.fixture
def show(run_in_browser: RunProgram) -> Show:
    skips.find_node("app-bridge", MODULES / "@modelcontextprotocol/ext-apps")

    def take(*steps: Step, **options: Any) -> Log:
        pages = {name: path.read_text() for name, path in PAGES.items()}
        given = {"view": view(), "steps": steps, "pages": pages, "modules": f"{MODULES}/", **options}
        log: Log = run_in_browser(PROGRAM, given)
        return log

    return take


def form(
    message: str, properties: Mapping[str, Any], *, required: Sequence[str] | None = None
) -> dict[str, Any]:
    """An input request for a form; by default all fields are required."""
    needed = list(properties) if required is None else list(required)
    return stored_tasks.form({"type": "object", "properties": properties, "required": needed}, message)


def asking(requests: Mapping[str, Any], state: str = "state-1", **members: Any) -> dict[str, Any]:
    """A result that asks, with the metadata of the view."""
    call = {"status": "asking", "tool": "provision_database", "arguments": {"name": "orders"}, "state": state}
    meta = {**call, "requests": requests, "issuedAt": 4_000_000_000, **members}
    return {"content": [{"type": "text", "text": "The user is being asked."}], "_meta": {META: meta}}


def complete(text: str) -> dict[str, Any]:
    """The result of the call, as the answer tool returns it."""
    return {"content": [{"type": "text", "text": text}], "_meta": {META: {"status": "complete"}}}


VCPUS = {"type": "integer", "title": "Virtual CPUs", "minimum": 1, "maximum": 16}
SIZE = form("How large should orders be?", {"vcpus": {**VCPUS, "description": "Each has 2 GiB of memory"}})
KEEP = form("orders costs 40 EUR a month. Keep it?", {"value": {"type": "boolean"}})

DONE = [{"result": complete("orders runs at db-1")}]
ASKED = ("result", asking({"size": SIZE}))
SEND = ("click", "Send")
ANSWERED = (("fill", "Virtual CPUs", "4"), SEND)
GOES_ON = ("see", "The assistant can go on.")


def answers_of(call: dict[str, Any]) -> dict[str, Any]:
    return {key: answer.get("content") for key, answer in call["arguments"]["answers"].items()}
