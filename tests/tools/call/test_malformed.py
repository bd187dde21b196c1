"""`make call` of a server whose responses are malformed ends with one line."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

import pytest

from mcp_roundtrip_tools.call.__main__ import main
from mcp_roundtrip_tools.call.terminal import Terminal
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer

TOOL = {"name": "make", "inputSchema": {"type": "object"}}
LISTED = {"resultType": "complete", "tools": [TOOL], "ttlMs": 0, "cacheScope": "private"}
TASK = {"resultType": "task", "taskId": "t"}
DEEP = "[" * 100_000


class Answers:
    """A server that answers by method; bytes are a body, another value is the result."""

    def __init__(self) -> None:
        self.by_method: Mapping[str, Any] = {}
        self.headers: tuple[tuple[str, str], ...] = ()
        self.status = 200

    def respond(self, request: Request) -> Response:
        message = json.loads(request.body or b"{}")
        found = self.by_method.get(message.get("method", request.target), b"")
        document = {"jsonrpc": "2.0", "id": message.get("id"), "result": found}
        body = found if isinstance(found, bytes) else json.dumps(document).encode()
        return Response(self.status, (("content-type", "application/json"), *self.headers), body)


@contextmanager
def serving(answers: Answers) -> Iterator[str]:
    with closing(HttpServer(answers.respond, max_body=100_000).start()) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(scope="module")
def answers() -> Answers:
    return Answers()


@pytest.fixture(scope="module")
def url(answers: Answers) -> Iterator[str]:
    with serving(answers) as found:
        yield found


def run(answers: Answers, url: str, **by_method: Any) -> tuple[int, list[str]]:
    """Return the status of the command and what it shows, where it is asked for the tool's result."""
    named = {name.replace("__", "/"): result for name, result in by_method.items()}
    answers.by_method = {"tools/list": LISTED, **named}
    shown = io.StringIO()
    terminal = Terminal(io.StringIO("/c\n" * 5), shown, is_interactive=True)
    status = main(["make", "--url", url], terminal=terminal)
    return status, shown.getvalue().splitlines()


@pytest.mark.parametrize(
    ("method", "result"),
    [
        ("tools/call", b"\xff"),
        ("tools/call", DEEP.encode()),
        ("tools/call", {"resultType": "complete", "content": ["text"]}),
        ("tools/list", None),
        ("tools/list", {**LISTED, "nextCursor": 1}),
    ],
)
def test_a_malformed_result_ends_with_one_line(answers: Answers, url: str, method: str, result: Any) -> None:
    status, shown = run(answers, url, **{"tools/call": TASK, method: result})
    assert status == 1
    assert [line.partition(":")[0] for line in shown] == ["error"]


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b'{"authorization_servers": 1}',
        b'{"authorization_servers": ["http://127.0.0.1:99999"], "resource": "http://127.0.0.1:99999"}',
        b'{"authorization_servers": ["http://[::1"], "resource": "http://[::1"}',
        b'{"authorization_servers": ["http://127.0.0.1:1"], "resource": 1}',
    ],
)
def test_malformed_metadata_ends_with_one_line(document: bytes) -> None:
    refusing = Answers()
    with serving(refusing) as url:
        named = url.replace("/mcp", "/metadata")
        refusing.headers = (("www-authenticate", f'Bearer resource_metadata="{named}"'),)
        refusing.status = 401
        status, shown = run(refusing, url, **{"/metadata": document})
    assert (status, len(shown)) == (2, 1), shown


@pytest.mark.parametrize("status", [403, 503])
def test_a_local_server_speaks_for_itself_and_not_for_a_deployment(status: int) -> None:
    refusing = Answers()
    refusing.status = status
    with serving(refusing) as url:
        ended, shown = run(refusing, url, tools__list=b'{"message": "the function ended"}')
    assert (ended, len(shown)) == (1, 1)
    assert f"{status}: the function ended" in shown[0]
    for word in ("API Gateway", "stack", "AuthMode", "Lambda"):
        assert word not in shown[0]


@pytest.mark.parametrize(
    "problem",
    [
        '  File "app.py", line 1, in <module>\n    import nowhere\nModuleNotFoundError: nowhere',
        "SettingsError: MCP_STATE_KEY_ARN: is not set; set it in the function's environment",
        "F: MCP_AUTH_MODE: must be one of none, bearer",
    ],
)
def test_a_problem_that_make_run_names_is_printed_as_it_is(problem: str) -> None:
    refusing = Answers()
    refusing.headers = (("apigw-requestid", "request-1"),)
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": problem}}
    with serving(refusing) as url:
        ended, shown = run(refusing, url, tools__list=json.dumps(error).encode())
    text = "\n".join(shown)
    assert (ended, text.endswith(problem), "refuses" in text) == (1, True, False)
