"""The execution environments, and the loss of one."""

from __future__ import annotations

from typing import Any

from mcp_roundtrip_tools.console.requests import ApiRequest, ConsoleError
from mcp_roundtrip_tools.run.app import LocalApp


def list_environments(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `GET environments`."""
    return {
        "environments": [
            {"id": each.id, "function": each.function, "alive": each.alive, "invocation": each.invocation}
            for each in app.environments()
        ]
    }


def kill_environment(app: LocalApp, request: ApiRequest) -> dict[str, Any]:
    """Answer `POST environments/{id}/kill`: the process ends as if its computer were lost."""
    name = request.parameters["id"]
    if not app.kill(name):
        raise ConsoleError(
            404, "no such execution environment runs, or it cannot be killed (make run DEBUG=1)"
        )
    app.recorder.note(f"console: {name} was killed")
    return {"killed": name}
