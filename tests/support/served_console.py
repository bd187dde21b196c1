"""The API of the console of a running template with a task, and an MCP client of it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES
from mcp_roundtrip_tools.run.app import LocalApp
from support.client_requests import ASKABLE
from support.sam_applications import SERVER_WITH_TASKS, Response, http, rpc, write_application
from support.served_application import serve

SOURCES = {
    "server/app.py": """
        import os, pathlib, time
        from mcp_roundtrip import Context, Server

        server = Server("orders")
        GATE = pathlib.Path(os.environ["GATE"])

        def create(name: str) -> str:
            while not GATE.exists():
                time.sleep(0.02)
            return f"order of {name}"

        @server.tool(task="optional")
        def order(ctx: Context, name: str) -> str:
            if name.startswith("no "):
                raise ValueError(f"{name} cannot be ordered")
            size = ctx.elicit("size", f"Which size of {name}?", str)
            ctx.run_as_task(ttl_ms=600_000)
            made = ctx.step("create", create, name)
            ctx.elicit("keep", f"Keep {made}?", bool)
            return f"{made} {size}"

        handler, worker_handler = server.lambda_handler, server.worker_handler
        """,
    "server/notes.md": "# Notes\n",
}

CLIENT = {META_CLIENT_CAPABILITIES: ASKABLE}

WRITES = {"x-console": "1", "content-type": "application/json"}


def accept(value: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"value": value}}


def api_url(app: LocalApp, path: str) -> str:
    return f"{app.console_url}console/api/{path}"


@dataclass(frozen=True)
class Console:
    """The API of a running template, and an MCP client of the same template."""

    app: LocalApp
    gate: Path

    def api(self, path: str, body: Any = None, method: str = "") -> Response:
        data = None if body is None else json.dumps(body).encode()
        default = "GET" if body is None else "POST"
        return http(api_url(self.app, path), method=method or default, body=data, headers=WRITES)

    def read(self, path: str, body: Any = None, method: str = "") -> Any:
        answer = self.api(path, body, method)
        assert answer.status == 200, answer.body
        return answer.json()

    def rpc(self, method: str, names: str, /, **params: Any) -> Response:
        return rpc(self.app.url("/"), method, meta=CLIENT, sent={"mcp-name": names}, **params)

    def call(self, item: str = "tea", **params: Any) -> Response:
        return self.rpc("tools/call", "order", name="order", arguments={"name": item}, **params)

    def start_task(self) -> str:
        state = self.call().json()["result"]["requestState"]
        answered = self.call(requestState=state, inputResponses={"size": accept("big")})
        return str(answered.json()["result"]["taskId"])

    def task(self, task_id: str, **expected: Any) -> Any:
        """Poll a task until it has these members."""
        for _ in range(200):
            self.rpc("tasks/get", task_id, taskId=task_id)
            found = self.read(f"tasks/{task_id}")
            if expected.items() <= found.items():
                return found
            time.sleep(0.05)
        raise AssertionError(found)


@contextmanager
def serve_console(folder: Path) -> Iterator[Console]:
    """Serve an application with a tool that asks, becomes a task, and waits for the file `gate` in it."""
    gate = folder / "gate"
    template = write_application(folder, SERVER_WITH_TASKS, SOURCES)
    with serve(template, variables={"GATE": str(gate)}) as app:
        yield Console(app, gate)
