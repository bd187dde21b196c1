"""Ask a `make run` of the same application to run a function.

Its console answers: only programs of the user who started it may use it, and no web page.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.client.http import Unreachable, member, request
from mcp_roundtrip_tools.client.local_issuer import LOOPBACK
from mcp_roundtrip_tools.invoke.invocation import Invoked, first_line
from mcp_roundtrip_tools.template.model import TemplateError

_WAIT_S: Final = 86_400.0
"""A function may run for 15 minutes, and in debug mode until its user continues."""

_HEADERS: Final = {"content-type": "application/json", "x-console": "1"}


def invoke_in_run(
    port: int, template: Path, function: str | None, event: str, show: Callable[[str], None]
) -> Invoked | None:
    """Run a function in the `make run` at this port; None if no run of this template is there.

    `show` receives the lines of the log. Raises TemplateError if the run refuses the request.
    """
    console = _console(port)
    if console is None:
        return None
    body = json.dumps({"template": str(template.resolve()), "function": function, "event": event}).encode()
    try:
        answer = request(
            "POST",
            f"{console}console/api/invocations",
            _HEADERS,
            body,
            timeout_s=_WAIT_S,
        )
    except Unreachable as error:
        raise TemplateError(f"make run at port {port} did not answer: {error}") from None
    message = member(answer, "message")
    if answer.status_code == 409 or (answer.status_code != 200 and message is None):  # of another program
        return None
    if answer.status_code != 200:
        raise TemplateError(f"make run at port {port}: {message}")
    return _show(answer.json(), port, show)


def _show(found: Any, port: int, show: Callable[[str], None]) -> Invoked:
    invoked = Invoked(
        found["function"],
        found["requestId"],
        found["payload"],
        found["failed"],
        found["initMs"],
        found["durationMs"],
    )
    show(f"Invoking {invoked.function} in make run at port {port}")
    for line in (first_line(invoked.request_id), *found["logLines"], *invoked.last_lines()):
        show(line)
    return invoked


def _console(port: int) -> str | None:
    """Return the URL of the console of a run, with a slash at the end; None if nothing leads to one."""
    try:
        found = request("GET", f"http://127.0.0.1:{port}/console/", {"accept": "text/html"})
    except Unreachable:
        return None
    location = found.headers.get("location", "")
    parts = urlsplit(location)
    is_console = found.status_code == 302 and parts.hostname in LOOPBACK and parts.path == "/"
    return location if is_console else None
