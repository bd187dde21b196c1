"""Exact limits, other spellings, stages and routes, and what changes between two rounds of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BaseModel

from corpus import author, callers
from corpus.cases import functions
from corpus.cases.requests import body_of, raw
from corpus.cases.states import UNENCRYPTED
from corpus.cases.tasks import play_acts, poll, work
from corpus.client import META, Client
from corpus.client_kinds import KINDS
from corpus.conversation import run, talk
from corpus.deployment import QUEUED_TASKS, TASKS, World
from corpus.full_server import ADD, ask, case
from corpus.recording import Case
from mcp_roundtrip import Context

LEGACY: Final = ("2025-06-18, declares nothing", "2025-11-25, declares nothing")


def cases() -> Iterator[Case]:
    yield from _limits()
    yield from _spellings()
    yield from _routes()
    yield from _stages()
    yield from _between_rounds()
    yield from _functions()


def _limits() -> Iterator[Case]:
    for length in (1_024, 1_025):
        yield case(f"an id of {length} characters", raw(body_of(id="x" * length)))
        yield case(f"a progress token of {length} characters", raw(body_of({"progressToken": "x" * length})))
    for length in (16_384, 16_385):
        token = "x" * (length - len("Bearer "))
        header = {"authorization": f"Bearer {token}"}
        yield case(f"an Authorization of {length} characters", ask("tools/list", header), mode="bearer")
    yield case("each limit of JSON values from 8 to 24", _value_limits)


def _value_limits(client: Client) -> None:
    for limit in range(8, 25):
        client.restart(MCP_MAX_JSON_VALUES=str(limit))
        ADD(client)
        raw(body_of({f"{META}clientCapabilities": {"roots": {"listChanged": True}}}))(client)


def _spellings() -> Iterator[Case]:
    for scheme in ("bearer", "BEARER", "Bearer "):
        yield case(f"the scheme {scheme!r} of a token", partial(_with_scheme, scheme), mode="bearer")
    for name, headers in {
        "Mcp-Method twice": {"mcp_method": "tools/call, tools/call"},
        "Mcp-Name twice": {"mcp_name": "add, add"},
        "Mcp-Name with space around it": {"mcp_name": " add "},
    }.items():
        yield case(f"call with {name}", ask("tools/call", headers, name="add", arguments={"a": 1}))
    for accept in ("text/event-stream;Q=0, */*", "TEXT/EVENT-STREAM", "text/*;q=0.5", "*/*;q=0"):
        yield Case(f"request: notifications for a client that accepts {accept}", _accepting, accept)
    for kind in LEGACY:
        yield case(f"no version after the session of a client of {kind}", _without_version, client=kind)
        yield Case(f"request: a log level with initialize, client {kind}", _initial_level, kind)
    yield Case("request: a URL in sessions of each version, with and without the version", _versions)
    for uri in ("play://a%2F..%2Fb", "play://a/%2E%2E/b", "play://../b", "play://a%2Fb"):
        yield Case(f"function: a template, read {uri}", _read, uri)


def _with_scheme(scheme: str, client: Client) -> None:
    ask("tools/list", {"authorization": f"{scheme} {callers.access_token(client.world, 'alice')}"})(client)


def _accepting(accept: str, world: World) -> None:
    client = functions.connected(functions.tool(author.notified), "shows forms and URLs", {}, world)
    client.request("tools/call", {"name": "play", "arguments": {"subject": "x"}}, accept=accept)


def _without_version(client: Client) -> None:
    ask("tools/list", {"mcp_protocol_version": None})(client)
    ask("tools/call", {"mcp_protocol_version": None}, name="none", arguments={})(client)


def _versions(world: World) -> None:
    """Ask at a URL, with and without the version, in a session of each version that may show URLs."""
    client = talk(world, "url", "step", client="2025-11-25, shows forms and URLs", mode="jwt").client
    for version in ("2025-06-18", "2025-11-25"):
        client = client.another(kind=replace(client.kind, version=version))
        client.open()
        for header in (None, "2025-11-25", "2025-06-18"):
            params = {"name": "play", "arguments": {"subject": "orders"}}
            client.request("tools/call", params, mcp_protocol_version=header)
            client.request("tools/list", {}, mcp_protocol_version=header)


def _initial_level(kind: str, world: World) -> None:
    client = functions.connected(functions.tool(author.notified), kind, {}, world)
    client.meta = {"io.modelcontextprotocol/logLevel": "debug"}
    client.open()
    client.meta = {"progressToken": 1}
    client.request("tools/call", {"name": "play", "arguments": {"subject": "x"}}, accept="text/event-stream")


def _read(uri: str, world: World) -> None:
    register = functions.FEATURES["a template with a query"]
    functions.connected(register, "declares nothing", {}, world).request("resources/read", {"uri": uri})


ROUTES: Final = {
    "/mcp": ("$default", "POST /mcp"),
    "/dev/mcp": ("dev", "POST /mcp"),
    "/dev/development/mcp": ("dev", "POST /development/mcp"),
    "/dev/mcp/tools/x": ("dev", "ANY /mcp/{proxy+}"),
    "/dev/other": ("dev", "$default"),
    "/.well-known/oauth-protected-resource/x/y": (
        "$default",
        "ANY /.well-known/oauth-protected-resource/x/{proxy+}",
    ),
    "/.well-known/oauth-protected-resource/mcp": (
        "$default",
        "ANY /.well-known/oauth-protected-resource/mcp",
    ),
}
"""Path -> the stage and the route, from which the URI of the endpoint is derived."""

DERIVED: Final = {"MCP_AUDIENCE": "", "MCP_ISSUER": "", **UNENCRYPTED}
"""Settings with which the state shows the derived URI."""


def _routes() -> Iterator[Case]:
    for path, (stage, key) in ROUTES.items():
        step = partial(_through, path, {"stage": stage, "routeKey": key}, "execute-api", "amazonaws.com")
        yield case(f"the URI of the endpoint for {path}, route {key}", step, settings=DERIVED)
    for source, route, service, suffix in (
        ("rest_api", {}, "execute-api", "amazonaws.com"),
        ("http_api_1_0", {"resourceId": "POST /mcp"}, "execute-api", "amazonaws.com"),
        ("function_url", {}, "lambda-url", "on.aws"),
    ):
        step = partial(_through, "/mcp", route, service, suffix)
        yield case(f"the URI of the endpoint, {source}", step, source=source, settings=DERIVED)


STAGES: Final = ("m", "mcp", "mc", "$default", "")


def _stages() -> Iterator[Case]:
    for stage in STAGES:
        for source in ("http_api", "rest_api"):
            name = f"paths of the stage {stage!r} through {source}"
            settings = {"MCP_SERVER_CARD": "com.example/corpus", **TASKS}
            yield case(name, partial(_paths, stage), source=source, settings=settings)


def _paths(stage: str, client: Client) -> None:
    _change_context(client, {"stage": stage})
    for prefix in ("", f"/{stage}") if stage.isalpha() else ("",):
        for path in ("/mcp/questions", "/mcp/server-card", "/mcp"):
            client.http("GET", prefix + path, {})


def _through(path: str, route: Mapping[str, str], service: str, suffix: str, client: Client) -> None:
    domain = {"apiId": "abc123", "domainName": f"abc123.{service}.eu-west-1.{suffix}"}
    named = {"routeKey": route["routeKey"]} if "routeKey" in route else {}
    _change_context(client, {**domain, **route}, **named)
    client.another(path=path).request("prompts/get", {"name": "play", "arguments": {"subject": "x"}})


def _change_context(client: Client, context: Mapping[str, str], **members: str) -> None:
    """Give the events of a client these members, and its request context those of `context`."""
    handle = client.function.request

    def request(event: Any, described: Mapping[str, Any]) -> Any:
        changed = {**event, **members, "requestContext": {**event["requestContext"], **context}}
        return handle(changed, {**described, **context})

    client.function.request = request  # type: ignore[method-assign]


# -- what changes between rounds -----------------------------------------------------------------------------


def _between_rounds() -> Iterator[Case]:
    for later in ("shows forms and URLs", "declares nothing"):
        yield Case(f"state: a default was used, then the client {later}", _other_client, later)
    for seconds in (4, 9):
        yield Case(f"state: a clock {seconds} s behind, across an hour", _slow_clock, seconds)
    yield Case("function: a sleep outside of a task", run, ("step", "sleep"))
    yield Case("function: a task in a tool without tasks", run, ("step", "task"))
    yield Case("function: a reference at two endpoints", _references)
    for end, task in {"": "long task", ", past its end": "task"}.items():
        naps = (task, "long sleep", "step")
        yield Case(f"task: of a queue, sleeps for 2,000 s{end}", play_acts, naps, (work, poll), QUEUED_TASKS)


def _other_client(later: str, world: World) -> None:
    conversation = talk(world, "default", "step", "url", "choice", client="shows URLs only")
    response = conversation.call()
    conversation.client = conversation.client.another(kind=KINDS[later])
    conversation.go_on(response)


def _slow_clock(seconds: float, world: World) -> None:
    conversation = talk(world, "form", "choice")
    world.clock.sleep(3_002)
    response = conversation.call()
    world.clock.now -= seconds
    conversation.go_on(response)


def _references(world: World) -> None:
    client = functions.connected(functions.tool(_reference), "declares nothing", {}, world)
    for audience in ("https://a.example/mcp", "https://a.example/mcp", "https://b.example/mcp"):
        client.restart(MCP_AUDIENCE=audience)
        client.request("tools/call", {"name": "play", "arguments": {"subject": "x"}})


def _reference(ctx: Context, subject: str) -> str:
    return ctx.reference("order")


def _refuse(value: str) -> str:
    if value == "text":
        raise ValueError(f"{value}: secret-4711 is taken")
    return value


class Checked(BaseModel):
    """A form with a validator of the author's."""

    name: Annotated[str, AfterValidator(_refuse)] = "text"


def validated(ctx: Context, subject: str) -> str:
    name: str = ctx.elicit("shade", "Which name?", Checked).name
    return name


def changes_a_result(ctx: Context, subject: str) -> str:
    found: Any = ctx.step("a", lambda: {"items": ["one"]})
    found["items"].append("two")
    ctx.confirm("sure", "Sure?")
    ctx.confirm("really", "Really?")
    return str(found)


def two_orders(ctx: Context, subject: str) -> str:
    first: str = ctx.elicit("color", "Which?", Literal["red", "blue"])
    second: str = ctx.elicit("shade", "And now?", Literal["blue", "red"])
    return first + second


def only_the_user(ctx: Context, subject: str) -> str:
    color: str = ctx.elicit("color", "Which?", Literal["red", "blue"], default="red")
    return f"{color} {ctx.elicit('sure', 'Sure?', bool, default=False, user_only=True)}"


FUNCTIONS: Final = (validated, changes_a_result, two_orders, only_the_user)


def _functions() -> Iterator[Case]:
    clients: Mapping[str, tuple[str, ...] | None] = {
        "shows forms and URLs": None,
        "declares nothing": ("model", "default"),
        "2025-11-25, declares nothing": ("page", "default"),
    }
    for function in FUNCTIONS:
        for client, channels in clients.items():
            if function is validated and channels:
                continue
            name = f"function: {function.__name__.replace('_', ' ')}, client {client}"
            register = functions.tool(function, channels=channels)
            yield Case(name, functions.converse, register, client, TASKS)
