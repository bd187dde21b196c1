"""Event sources, callers, public documents and settings: what a deployment chooses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corpus import callers
from corpus.client import Client
from corpus.full_server import ADD, Step, ask, call, case
from corpus.recording import Case


def cases() -> Iterator[Case]:
    yield from _per_source()
    yield from _authorization()
    yield from _documents()
    yield from _settings()


def _per_source() -> Iterator[Case]:
    for mode, sources in callers.MODES.items():
        for source in sources:
            options: dict[str, Any] = {"mode": mode, "source": source}
            yield case(f"a call through {source} with {mode}", ADD, **options)
            if source != "direct" and mode == "none":
                yield case(f"body without Base64 through {source} with {mode}", _not_base64, **options)
    for source in ("alb", "alb_multi_value", "direct"):
        derived = {"MCP_AUDIENCE": "", "MCP_ISSUER": ""}
        steps = ADD, ask("prompts/get", name="play", arguments={"subject": "x"})
        yield case(f"audience from {source}", *steps, source=source, settings=derived)


def _not_base64(client: Client) -> None:
    event = callers.event_of(client.source, client.mode, client.person, "POST", "/mcp", {}, "")
    client.function.request({**event, "body": "%", "isBase64Encoded": True}, {"body": "% as Base64"})


def _authorization() -> Iterator[Case]:
    steps = ask("tools/list"), call("drop", name="x"), call("play", subject="x")
    scopes = {"db:admin": ["db:write"], "db:write": ["db:read"]}
    for mode in ("bearer", "jwt", "lambda", "iam"):
        yield case(f"no caller with {mode}", ADD, ask("tools/list"), mode=mode, person=None)
        for hides in (False, True):
            name = f"scopes with {mode}{', hidden' if hides else ''}"
            yield case(name, *steps, mode=mode, server={"scopes": scopes, "hide_unauthorized": hides})
    yield case("scope prefix", call("drop", name="x"), mode="bearer", settings={"MCP_SCOPE_PREFIX": "api/"})
    settings = {"MCP_IAM_PRINCIPAL": "session"}
    step = ask("prompts/get", name="play", arguments={"subject": "x"})
    yield case("sessions of a role", step, mode="iam", settings=settings)


def _documents() -> Iterator[Case]:
    paths = (
        *("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"),
        *("/mcp/server-card", "/.well-known/mcp/server-card", "/mcp/questions", "/other"),
    )
    for path in paths:
        for mode in ("none", "bearer"):
            settings = {"MCP_SERVER_CARD": "com.example/corpus"}
            yield case(f"GET {path} with {mode}", _get(path), mode=mode, person=None, settings=settings)


def _get(path: str) -> Step:
    return lambda client: client.http("GET", path, {"accept": "application/json"})


def _settings() -> Iterator[Case]:
    steps = ADD, ask("prompts/get", name="play", arguments={"subject": "x"})
    for name, settings in {
        "no AuthMode": {"MCP_AUTH_MODE": ""},
        "no key": {"MCP_STATE_KEY_ARN": ""},
        "a worker that is none": {"MCP_TASK_WORKER": "worker"},
    }.items():
        yield case(f"settings with {name}", *steps, settings=settings)
    yield case("an unknown log level", ADD, settings={"POWERTOOLS_LOG_LEVEL": "LOUD"})
    yield case("log level ERROR", ADD, call("nothing"), settings={"POWERTOOLS_LOG_LEVEL": "ERROR"})
    names = {"POWERTOOLS_SERVICE_NAME": "shop", "POWERTOOLS_METRICS_NAMESPACE": "ns"}
    yield case("a service name and a namespace", call("nothing"), settings=names)
    yield case("an X-Ray trace", ADD, settings={"_X_AMZN_TRACE_ID": "Root=1-67890abc-def;Parent=1;Sampled=1"})
