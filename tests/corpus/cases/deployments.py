"""Event sources, callers, public documents and settings: what a deployment chooses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corpus import callers
from corpus.client import Client
from corpus.deployment import World
from corpus.full_server import ADD, Step, ask, call, case, deployed_full
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
        yield Case(f"request: {name}", _unknown_event, event)


def _not_base64(client: Client) -> None:
    event = callers.event_of(client.source, client.mode, client.person, "POST", "/mcp", {}, "")
    client.function.request({**event, "body": "%", "isBase64Encoded": True}, {"body": "% as Base64"})


def _unknown_event(event: Any, world: World) -> None:
    deployed_full(world).function.request(event, {"event": event})


def _authorization() -> Iterator[Case]:
    steps = ask("tools/list"), call("drop", name="x"), call("play", subject="x")
    scopes = {"db:admin": ["db:write"], "db:write": ["db:read"]}
    for mode in ("bearer", "jwt", "lambda", "iam"):
        yield case(f"no caller with {mode}", ADD, ask("tools/list"), mode=mode, person=None)
        for hides in (False, True):
            name = f"scopes with {mode}{', hidden' if hides else ''}"
            yield case(name, *steps, mode=mode, server={"scopes": scopes, "hide_unauthorized": hides})
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
        yield case(f"access token {name}", _with_token(**claims), mode="bearer")
    yield case("malformed access token", ask("tools/list", {"authorization": "Bearer x"}), mode="bearer")
    yield case("malformed Authorization", ask("tools/list", {"authorization": "Bearer a b"}), mode="bearer")
    yield case("basic Authorization", ask("tools/list", {"authorization": "Basic x"}), mode="bearer")
    yield case("access token, keys from the metadata", _with_discovery, mode="bearer")
    yield case("unavailable issuer", _without_issuer, mode="bearer")
    yield case("scope prefix", call("drop", name="x"), mode="bearer", settings={"MCP_SCOPE_PREFIX": "api/"})
    settings = {"MCP_IAM_PRINCIPAL": "session"}
    step = ask("prompts/get", name="play", arguments={"subject": "x"})
    yield case("sessions of a role", step, mode="iam", settings=settings)


def _with_token(**claims: Any) -> Step:
    def step(client: Client) -> None:
        token = callers.access_token(client.world, "alice", **claims)
        ask("tools/list", {"authorization": f"Bearer {token}"})(client)

    return step


def _with_discovery(client: Client) -> None:
    client.restart(MCP_TOKEN_ISSUER=client.world.url, MCP_TOKEN_JWKS_URI="")
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
            settings = {"MCP_SERVER_CARD": "com.example/corpus"}
            yield case(f"GET {path} with {mode}", _get(path), mode=mode, person=None, settings=settings)


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
        yield case(f"settings with {name}", *steps, settings=settings)
    yield case("an unknown log level", ADD, settings={"POWERTOOLS_LOG_LEVEL": "LOUD"})
    yield case("log level ERROR", ADD, call("nothing"), settings={"POWERTOOLS_LOG_LEVEL": "ERROR"})
    names = {"POWERTOOLS_SERVICE_NAME": "shop", "POWERTOOLS_METRICS_NAMESPACE": "ns"}
    yield case("a service name and a namespace", call("nothing"), settings=names)
    yield case("an X-Ray trace", ADD, settings={"_X_AMZN_TRACE_ID": "Root=1-67890abc-def;Parent=1;Sampled=1"})
