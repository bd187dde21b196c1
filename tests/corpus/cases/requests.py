"""Requests as they arrive: what is refused before a feature runs, discovery, lists, and public documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, Any, Final

from corpus import callers
from corpus.client import META, Client
from corpus.client_kinds import KINDS
from corpus.deployment import TASKS, World
from corpus.features import Feature, register
from corpus.recording import Case
from mcp_roundtrip import Completion, McpHeader, ResourceNotFound, Server
from mcp_roundtrip.ports import Ports

FORMS = KINDS["shows forms and URLs"]


def full_server(world: World, **options: Any) -> Callable[[Callable[[], Ports]], Server]:
    """Return what makes a server with features of every kind."""

    def make(ports: Callable[[], Ports]) -> Server:
        server = Server("corpus", ports=ports, title="The corpus", instructions="Ask.", **options)
        register(server, Feature(("form", "step"), task="optional", scopes=("db:write",)), world)
        register(server, Feature(("form",), kind="prompt"), world)
        register(server, Feature(("step",), kind="resource"), world)

        @server.tool(annotations={"readOnlyHint": True}, title="Add")
        def add(a: int, b: int = 2) -> dict[str, int]:
            """Add two numbers."""
            return {"sum": a + b}

        @server.tool(requires=["sampling"], scopes=["db:admin"])
        def drop(name: str) -> str:
            """Drop a database."""
            return name

        @server.tool
        def region(place: Annotated[str, McpHeader("Region")]) -> str:
            """Tell the region."""
            return place

        @server.resource("docs://guide", mime_type="text/markdown", ttl_ms=60_000, cache_scope="public")
        def guide() -> str:
            """The guide."""
            return "# Guide"

        @server.resource("docs://missing")
        def missing() -> str:
            """Nothing."""
            raise ResourceNotFound

        @server.resource("docs://bytes")
        def data() -> bytes:
            """Bytes."""
            return b"\x00\x01"

        @server.completion("play", "subject")
        def subjects(text: str) -> Completion:
            return Completion([each for each in ("orders", "invoices") if each.startswith(text)], total=9)

        return server

    return make


Step = Callable[[Client], Any]


def _case(name: str, *steps: Step, kind: str = "shows forms and URLs", **options: Any) -> Case:
    """Return a case in which a client sends requests to the full server."""

    def run(world: World) -> None:
        client = deployed(world, KINDS[kind], **options)
        for step in steps:
            step(client)

    return Case(f"request: {name}", run)


def deployed(
    world: World,
    kind: Any = FORMS,
    *,
    mode: str = "none",
    source: str = "http_api",
    settings: Mapping[str, str] | None = None,
    person: str | None = "alice",
    opens: bool = True,
    **options: Any,
) -> Client:
    """Deploy the full server, and return a client that has opened."""
    given = {**callers.settings(mode, world), **(settings or {})}
    function = world.function(full_server(world, **options), **given)
    client = Client(world, function, kind, mode, source, None if mode == "none" else person)
    if opens:
        client.open()
    return client


def ask(method: str, headers: Mapping[str, str | None] | None = None, /, **params: Any) -> Step:
    """Return a step that sends a conforming request, with changed headers."""
    return lambda client: client.request(method, params, **(headers or {}))


def call(name: str, /, **arguments: Any) -> Step:
    return ask("tools/call", name=name, arguments=arguments)


ADD: Final = call("add", a=1)


def raw(body: Any, headers: Mapping[str, str] | None = None, method: str = "POST") -> Step:
    """Return a step that sends a body as it is, with the headers of a conforming call of `add`."""
    usual = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "add"}
    return lambda client: client.send(body, {**usual, **(headers or {})}, method)


def body_of(client_meta: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return the body of a conforming call of `add`, with changes; None removes a member."""
    meta = {
        f"{META}protocolVersion": "2026-07-28",
        f"{META}clientInfo": FORMS.info,
        f"{META}clientCapabilities": {},
        **(client_meta or {}),
    }
    params = {"name": "add", "arguments": {"a": 1}, "_meta": {k: v for k, v in meta.items() if v != "absent"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params, **changes}
    return {name: value for name, value in body.items() if value != "absent"}


BODIES: Final[Mapping[str, Any]] = {
    "no JSON": "{",
    "empty": "",
    "a number": "1",
    "a batch": [body_of(), body_of(id=2)],
    "an empty batch": "[]",
    "NaN": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":NaN}}',
    "a member twice": '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping","params":{}}',
    "a lone surrogate": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
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
    "an unknown protocol version": body_of({f"{META}protocolVersion": "2027-01-01"}),
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
    """Yield the cases."""
    for name, body in BODIES.items():
        yield _case(f"body with {name}", raw(body))
        if not isinstance(body, str | list):
            yield _case(f"direct invocation, body with {name}", raw(body), source="direct")
    for name, headers in HEADERS.items():
        origins = {"MCP_ALLOWED_ORIGINS": "https://app.example, https://b.example"}
        yield _case(
            f"call with {name}", ask("tools/call", headers, name="add", arguments={"a": 1}), settings=origins
        )
    for method in ("GET", "DELETE", "PUT", "HEAD", "OPTIONS"):
        yield _case(f"HTTP {method}", raw(None, method=method))
    yield from _limits()
    yield from _methods()
    yield from _per_client()
    yield from _per_source()
    yield from _authorization()
    yield from _documents()
    yield from _settings()


def _limits() -> Iterator[Case]:
    long = {"name": "add", "arguments": {"a": 1, "text": "x" * 300}}
    few = {"MCP_MAX_BODY_BYTES": "400"}
    yield _case("body over the limit", ask("tools/call", **long), settings=few)
    yield _case(
        "body over the limit of a legacy client",
        ask("tools/call", **long),
        settings=few,
        kind="2025-11-25, declares nothing",
    )
    values = {"MCP_MAX_JSON_VALUES": "20"}
    yield _case("JSON values over the limit", call("add", a=1, b=[*range(30)]), settings=values)
    yield _case("long URI", ask("resources/read", uri="docs://" + "x" * 9_000))
    yield _case("long tool name", call("x" * 200))


def _methods() -> Iterator[Case]:
    for method in (
        "server/discover",
        "ping",
        "initialize",
        "logging/setLevel",
        "subscriptions/listen",
        "x/y",
    ):
        yield _case(f"method {method}", ask(method))
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list"):
        yield _case(f"method {method} in pages", ask(method), ask(method, cursor="x"), page_size=2)
    yield _case("the second page", _follow_cursor("tools/list"), page_size=2)
    yield _case("a call", ADD)
    wrong: dict[str, dict[str, Any]] = {
        "a missing argument": {},
        "a wrong type": {"a": "secret-4711"},
        "an unknown argument": {"a": 1, "c": 2},
        "a fraction": {"a": 1.5},
        "a whole number with a point": {"a": 1.0},
        "true": {"a": True},
    }
    for name, arguments in wrong.items():
        yield _case(f"arguments with {name}", call("add", **arguments))
    yield _case("arguments are a list", ask("tools/call", name="add", arguments=[]))
    yield _case("no tool name", ask("tools/call", arguments={}))
    yield _case("an unknown tool", call("nothing"))
    yield _case("a missing capability", call("drop", name="x"))
    yield _case(
        "a header that repeats an argument",
        ask("tools/call", {"mcp_param_region": "eu"}, name="region", arguments={"place": "eu"}),
    )
    yield _case(
        "a header that repeats another argument",
        ask("tools/call", {"mcp_param_region": "us"}, name="region", arguments={"place": "eu"}),
    )
    yield _case("no header that repeats an argument", call("region", place="eu"))
    for uri in (
        "docs://guide",
        "DOCS://guide",
        "docs://missing",
        "docs://bytes",
        "docs://none",
        "play://a%20b",
    ):
        yield _case(f"read {uri}", ask("resources/read", uri=uri))
        yield _case(f"legacy read {uri}", ask("resources/read", uri=uri), kind="2025-11-25, declares nothing")
    yield _case("read without a URI", ask("resources/read"))
    completions: dict[str, dict[str, Any]] = {
        "of a prompt": {"ref": {"type": "ref/prompt", "name": "play"}},
        "of a template": {"ref": {"type": "ref/resource", "uri": "play://{subject}"}},
        "of an unknown prompt": {"ref": {"type": "ref/prompt", "name": "none"}},
        "of nothing": {"ref": {}},
    }
    for name, params in completions.items():
        argument = {"name": "subject", "value": "or"}
        yield _case(f"completion {name}", ask("completion/complete", argument=argument, **params))
    yield _case(
        "completion without an argument",
        ask("completion/complete", ref={"type": "ref/prompt", "name": "play"}),
    )
    yield _case("an unknown prompt", ask("prompts/get", name="none"))
    yield _case("a prompt without arguments", ask("prompts/get", name="play"))
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        for task in ("x" * 32, "short", 7):
            yield _case(
                f"{method} of the unknown task {task!r}",
                ask(method, taskId=task, inputResponses={}),
                kind="shows forms and URLs, follows tasks",
                settings=TASKS,
            )
        yield _case(f"{method} of a client without tasks", ask(method, taskId="x" * 32), settings=TASKS)
        yield _case(f"{method} without a table", ask(method, taskId="x" * 32), kind="only follows tasks")


def _follow_cursor(method: str) -> Step:
    def step(client: Client) -> None:
        cursor = client.request(method, {})["result"]["nextCursor"]
        client.request(method, {"cursor": cursor})

    return step


def _per_client() -> Iterator[Case]:
    for name in KINDS:
        for table in ({}, TASKS):
            where = "with a table" if table else "without a table"
            yield _case(
                f"discovery and lists of the client {name} {where}",
                *(ask("server/discover") for _ in range(not KINDS[name].is_legacy)),
                ask("tools/list"),
                ask("prompts/list"),
                ask("resources/list"),
                ADD,
                kind=name,
                settings=table,
                channels=("app", "page", "model", "default"),
            )
    for version in ("2025-03-26", "2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28", "x"):
        yield _case(f"initialize with {version}", _initialize(version), opens=False)
        yield _case(
            f"initialize with {version}, legacy clients are not served",
            _initialize(version),
            opens=False,
            legacy_clients=False,
        )
    for member in ("protocolVersion", "capabilities", "clientInfo"):
        yield _case(f"initialize without {member}", _initialize("2025-11-25", member), opens=False)
    yield _case("ping of a legacy client", ask("ping"), kind="2025-11-25, declares nothing")
    yield _case("a foreign session id", _with_session("x"), kind="2025-11-25, declares nothing")
    yield _case("notification of a legacy client", _initialized, kind="2025-11-25, declares nothing")
    yield _case("unknown tool of a legacy client", call("nothing"), kind="2025-06-18, declares nothing")
    yield _case(
        "task methods of a legacy client",
        ask("tasks/get", taskId="x"),
        kind="2025-06-18, declares nothing",
        settings=TASKS,
        legacy_tasks="sep-2322",
    )


def _initialize(version: str, missing: str = "") -> Step:
    def step(client: Client) -> None:
        params = {"protocolVersion": version, "capabilities": {"roots": {}}, "clientInfo": FORMS.info}
        client.post("initialize", {k: v for k, v in params.items() if k != missing}, {})

    return step


def _with_session(session: str) -> Step:
    def step(client: Client) -> None:
        client.session = session
        ADD(client)

    return step


def _initialized(client: Client) -> None:
    headers = {"mcp-protocol-version": client.kind.version, "mcp-session-id": client.session or ""}
    client.send({"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)


def _per_source() -> Iterator[Case]:
    for mode, sources in callers.MODES.items():
        for source in sources:
            yield _case(
                f"a call through {source} with {mode}", ADD, ask("tools/list"), mode=mode, source=source
            )
            if source != "direct":
                yield _case(
                    f"body without Base64 through {source} with {mode}", _not_base64, mode=mode, source=source
                )
    for source in callers.SOURCES:
        derived = {"MCP_AUDIENCE": "", "MCP_ISSUER": ""}
        yield _case(
            f"audience from {source}",
            ADD,
            ask("prompts/get", name="play", arguments={"subject": "x"}),
            source=source,
            settings=derived,
        )
    for name, event in {
        "an empty event": {},
        "a list": [],
        "an event of S3": {"Records": [{"s3": {}}]},
        "an event of an authorizer": {
            "version": "2.0",
            "type": "REQUEST",
            "requestContext": {"http": {"method": "POST"}},
        },
    }.items():
        yield Case(f"request: {name}", partial(_unknown_event, event))


def _not_base64(client: Client) -> None:
    client.function.request({**_event(client), "body": "%", "isBase64Encoded": True}, {"body": "% as Base64"})


def _event(client: Client) -> dict[str, Any]:
    return callers.event_of(client.source, client.mode, client.person, "POST", "/mcp", {}, "")


def _unknown_event(event: Any, world: World) -> None:
    client = deployed(world)
    client.function.request(event, {"event": event})


def _authorization() -> Iterator[Case]:
    for mode in ("bearer", "jwt", "lambda", "iam"):
        yield _case(f"no caller with {mode}", ADD, ask("tools/list"), mode=mode, person=None)
        for hides in (False, True):
            yield _case(
                f"scopes with {mode}{', hidden' if hides else ''}",
                ask("tools/list"),
                call("drop", name="x"),
                call("play", subject="x"),
                mode=mode,
                scopes={"db:admin": ["db:write"], "db:write": ["db:read"]},
                hide_unauthorized=hides,
            )
    wrong: dict[str, dict[str, Any]] = {
        "of another issuer": {"iss": "https://other.example"},
        "for another audience": {"aud": "https://other.example"},
        "that has expired": {"exp": 1_785_000_000},
        "of tomorrow": {"nbf": 1_785_700_000},
        "without a subject": {"sub": None},
        "bound to a key": {"cnf": {"jkt": "x"}},
        "that is an ID token": {"token_use": "id"},
        "with a list of scopes": {"scope": ["db:read"]},
        "without a client": {"client_id": None},
    }
    for name, claims in wrong.items():
        yield _case(f"access token {name}", _with_token(**claims), mode="bearer")
    yield _case("malformed access token", ask("tools/list", {"authorization": "Bearer x"}), mode="bearer")
    yield _case("malformed Authorization", ask("tools/list", {"authorization": "Bearer a b"}), mode="bearer")
    yield _case("basic Authorization", ask("tools/list", {"authorization": "Basic x"}), mode="bearer")
    yield _case("access token, keys from the metadata", _with_discovery, mode="bearer")
    yield _case("unavailable issuer", _without_issuer, mode="bearer")
    yield _case("scope prefix", call("drop", name="x"), mode="bearer", settings={"MCP_SCOPE_PREFIX": "api/"})
    yield _case(
        "sessions of a role", call("play", subject="x"), mode="iam", settings={"MCP_IAM_PRINCIPAL": "session"}
    )


def _with_token(**claims: Any) -> Step:
    def step(client: Client) -> None:
        token = callers.access_token(client.world, "alice", **claims)
        ask("tools/list", {"authorization": f"Bearer {token}"})(client)

    return step


def _with_discovery(client: Client) -> None:
    issuer = {"MCP_TOKEN_ISSUER": client.world.url, "MCP_TOKEN_JWKS_URI": ""}
    client.function = client.function.another_environment(**issuer)
    _with_token(iss=client.world.url)(client)


def _without_issuer(client: Client) -> None:
    client.world.account.documents.clear()
    ADD(client)
    ADD(client)


def _documents() -> Iterator[Case]:
    paths = (
        *("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"),
        *("/mcp/server-card", "/.well-known/mcp/server-card", "/mcp/questions", "/other"),
    )
    for path in paths:
        for mode in ("none", "bearer"):
            yield _case(
                f"GET {path} with {mode}",
                _get(path),
                mode=mode,
                person=None,
                settings={"MCP_SERVER_CARD": "com.example/corpus"},
            )


def _get(path: str) -> Step:
    return lambda client: client.http("GET", path, {"accept": "application/json"})


def _settings() -> Iterator[Case]:
    wrong = {
        "no AuthMode": {"MCP_AUTH_MODE": ""},
        "an unknown AuthMode": {"MCP_AUTH_MODE": "magic"},
        "no issuer for bearer": {"MCP_AUTH_MODE": "bearer"},
        "a principal key without lambda": {"MCP_PRINCIPAL_CONTEXT_KEY": "user"},
        "an alias as the key": {"MCP_STATE_KEY_ARN": "alias/states"},
        "no key": {"MCP_STATE_KEY_ARN": ""},
        "no encryption key": {"MCP_STATE_ENCRYPTION_KEY_ARN": ""},
        "a word as the number of rounds": {"MCP_MAX_ROUNDS": "nine"},
        "a long round": {"MCP_ROUND_TTL_S": "4000"},
        "an audit without a log group": {"MCP_AUDIT": "principal"},
        "a worker that is none": {"MCP_TASK_WORKER": "worker"},
    }
    steps = ADD, ask("prompts/get", name="play", arguments={"subject": "x"})
    for name, settings in wrong.items():
        yield _case(f"settings with {name}", *steps, settings=settings)
    yield _case("an unknown log level", ADD, settings={"POWERTOOLS_LOG_LEVEL": "LOUD"})
    yield _case("log level ERROR", ADD, call("nothing"), settings={"POWERTOOLS_LOG_LEVEL": "ERROR"})
    yield _case(
        "a service name and a namespace",
        call("nothing"),
        settings={"POWERTOOLS_SERVICE_NAME": "shop", "POWERTOOLS_METRICS_NAMESPACE": "ns"},
    )
    yield _case(
        "an X-Ray trace", ADD, settings={"_X_AMZN_TRACE_ID": "Root=1-67890abc-def;Parent=1;Sampled=1"}
    )
