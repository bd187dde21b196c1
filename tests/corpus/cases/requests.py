"""Requests as they arrive: what is refused before a feature runs, discovery, lists, and public documents."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from corpus.client import META, Client
from corpus.client_kinds import KINDS
from corpus.deployment import TASKS
from corpus.full_server import ADD, Step, ask, call, case
from corpus.recording import Case

LEGACY: Final = "2025-11-25, declares nothing"
INFO: Final = KINDS["shows forms and URLs"].info


def raw(body: Any, headers: Mapping[str, str] | None = None, method: str = "POST") -> Step:
    """Return a step that sends a body as it is, with the headers of a conforming call of `add`."""
    usual = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "add"}
    return lambda client: client.send(body, {**usual, **(headers or {})}, method)


def body_of(client_meta: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the body of a conforming call of `add`, with changes; None removes a member."""
    meta = {
        f"{META}protocolVersion": "2026-07-28",
        f"{META}clientInfo": INFO,
        f"{META}clientCapabilities": {},
        **(client_meta or {}),
    }
    params = {"name": "add", "arguments": {"a": 1}, "_meta": {k: v for k, v in meta.items() if v != "absent"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **changes}
    return {name: value for name, value in body.items() if value != "absent"}


PARAMS: Final = body_of()["params"]
BODIES: Final[Mapping[str, Any]] = {
    "no JSON": "{",
    "empty": "",
    "a number": "1",
    "a batch": [body_of(), body_of(id=2)],
    "an empty batch": "[]",
    "NaN": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":NaN}}',
    "a member twice": '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":{}}',
    "a lone surrogate": json.dumps(body_of(params={**PARAMS, "arguments": {"a": "\ud800"}})),
    "many levels": "[" * 150 + "]" * 150,
    "another version of JSON-RPC": body_of(jsonrpc="1.0"),
    "no version of JSON-RPC": body_of(jsonrpc="absent"),
    "no method": body_of(method="absent"),
    "a number as the method": body_of(method=1),
    "no params": body_of(params="absent"),
    "a list of params": body_of(params=[]),
    "null as the id": body_of(id=None),
    "a fraction as the id": body_of(id=1.5),
    "a text as the id": body_of(id="one"),
    "a notification": body_of(id="absent"),
    "a notification without params": {"jsonrpc": "2.0", "method": "notifications/initialized"},
    "a response": {"jsonrpc": "2.0", "id": 1, "result": {}},
    "no _meta": body_of(params={"name": "add", "arguments": {"a": 1}}),
    "_meta is a text": body_of(params={"name": "add", "_meta": "x"}),
    "no protocol version": body_of({f"{META}protocolVersion": "absent"}),
    "no client capabilities": body_of({f"{META}clientCapabilities": "absent"}),
    "a list of client capabilities": body_of({f"{META}clientCapabilities": []}),
    "no client info": body_of({f"{META}clientInfo": "absent"}),
    "a text as the client info": body_of({f"{META}clientInfo": "x"}),
    "a list as the progress token": body_of({"progressToken": []}),
    "an unknown log level": body_of({f"{META}logLevel": "loud"}),
    "a trace context": body_of({"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
    "a malformed trace context": body_of({"traceparent": "x"}),
}
HEADERS: Final[Mapping[str, Mapping[str, str | None]]] = {
    "no Mcp-Method": {"mcp_method": None},
    "another Mcp-Method": {"mcp_method": "tools/list"},
    "no Mcp-Name": {"mcp_name": None},
    "another Mcp-Name": {"mcp_name": "drop"},
    "an encoded Mcp-Name": {"mcp_name": "=?base64?YWRk?="},
    "no MCP-Protocol-Version": {"mcp_protocol_version": None},
    "another MCP-Protocol-Version": {"mcp_protocol_version": "2025-11-25"},
    "MCP-Protocol-Version 2025-03-26": {"mcp_protocol_version": "2025-03-26"},
    "an unknown MCP-Protocol-Version": {"mcp_protocol_version": "2027-01-01"},
    "an Origin that is not allowed": {"origin": "https://evil.example"},
    "an Origin that is allowed": {"origin": "https://app.example"},
    "gzip": {"content_encoding": "gzip"},
    "another media type": {"content_type": "text/plain"},
    "an Accept without SSE": {"accept": "application/json"},
}


def cases() -> Iterator[Case]:
    for name, body in BODIES.items():
        yield case(f"body with {name}", raw(body))
        if not isinstance(body, str | list) and name.startswith(("no ", "a notification")):
            yield case(f"direct invocation, body with {name}", raw(body), source="direct")
    for name, headers in HEADERS.items():
        origins = {"MCP_ALLOWED_ORIGINS": "https://app.example, https://b.example"}
        step = ask("tools/call", headers, name="add", arguments={"a": 1})
        yield case(f"call with {name}", step, settings=origins)
    later = {f"{META}protocolVersion": "2027-01-01"}
    yield case("an unknown protocol version", raw(body_of(later), {"mcp-protocol-version": "2027-01-01"}))
    for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
        yield case(f"HTTP {method}", raw(None, method=method))
    step = ask("tools/call", name="add", arguments={"a": 1, "text": "x" * 300})
    yield case("body over the limit", step, settings={"MCP_MAX_BODY_BYTES": "400"})
    step, values = call("add", a=1, b=[*range(30)]), {"MCP_MAX_JSON_VALUES": "20"}
    yield case("JSON values over the limit", step, settings=values)
    yield from _methods()
    yield from _per_client()


def _methods() -> Iterator[Case]:
    for method in (
        "server/discover",
        "ping",
        "initialize",
        "logging/setLevel",
        "subscriptions/listen",
        "x/y",
    ):
        yield case(f"method {method}", ask(method))
    yield case("a subscription", ask("subscriptions/listen", notifications={"toolsListChanged": True}))
    view = call("answer_questions", tool="play", arguments={}, state="x", answers={})
    yield case("an answer of a view that the client cannot show", view)
    yield case("a call", ADD)
    yield case("arguments are a list", ask("tools/call", name="add", arguments=[]))
    yield case("no tool name", ask("tools/call", arguments={}))
    yield case("an unknown tool", call("nothing"))
    scopes = {"db:write": ["db:admin"]}
    yield case("a missing capability", call("drop", name="x"), mode="jwt", server={"scopes": scopes})
    for which, region in {"an": "eu", "another": "us"}.items():
        step = ask("tools/call", {"mcp_param_region": region}, name="region", arguments={"place": "eu"})
        yield case(f"a header that repeats {which} argument", step)
    step = call("region", place="eu")
    yield case("no header that repeats an argument", step)
    yield case("direct invocation, a header that repeats an argument", step, source="direct")
    documents = ("guide", "missing", "bytes", "none")
    for uri in ("DOCS://guide", *(f"docs://{name}" for name in documents), "play://a%20b"):
        yield case(f"read {uri}", ask("resources/read", uri=uri))
        yield case(f"legacy read {uri}", ask("resources/read", uri=uri), client=LEGACY)
    yield case("read without a URI", ask("resources/read"))
    yield case("an unknown prompt", ask("prompts/get", name="none"))
    yield case("a prompt without arguments", ask("prompts/get", name="play"))
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        step = ask(method, taskId="x" * 32, inputResponses={})
        yield case(f"{method} of a client without tasks", step, settings=TASKS)
        yield case(f"{method} without a table", step, client="only follows tasks")
    step = ask("tasks/update", taskId="x" * 32)
    yield case("tasks/update without answers and without a table", step, client="only follows tasks")


LISTS: Final = tuple(ask(method) for method in ("tools/list", "prompts/list", "resources/list"))


def _per_client() -> Iterator[Case]:
    server: dict[str, Any] = {"channels": ("app", "page", "model", "default")}
    for name in KINDS:
        first = () if KINDS[name].is_legacy else (ask("server/discover"),)
        title = f"discovery and lists of the client {name}"
        yield case(title, *first, *LISTS, ADD, client=name, settings=TASKS, server=server)
        if name in ("declares nothing", "shows apps", "2025-11-25, declares nothing"):
            yield case(f"{title} without a table", *first, *LISTS, client=name, server=server)
    for version in ("2025-03-26", "2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28", "x"):
        step = initialize(version)
        yield case(f"initialize with {version}", step, opens=False)
        name = f"initialize with {version}, legacy clients are not served"
        yield case(name, step, opens=False, server={"legacy_clients": False})
    for member in ("protocolVersion", "capabilities", "clientInfo"):
        yield case(f"initialize without {member}", initialize("2025-11-25", member), opens=False)
    yield case("ping of a legacy client", ask("ping"), client=LEGACY)
    yield case("unknown tool of a legacy client", call("nothing"), client="2025-06-18, declares nothing")
    step, client = ask("tasks/get", taskId="x"), "2025-06-18, declares nothing"
    server = {"legacy_tasks": "sep-2322"}
    yield case("task methods of a legacy client", step, client=client, settings=TASKS, server=server)


def initialize(version: str, missing: str = "") -> Step:
    def step(client: Client) -> None:
        params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": INFO}
        client.post("initialize", {k: v for k, v in params.items() if k != missing}, {})

    return step
