"""Challenges and metadata in the responses for each event source."""

import json
from typing import Any

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.adapters.detect import detect
from mcp_roundtrip.adapters.event_formats import ADAPTERS
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip_testing.task_table import FakeClock
from mcp_roundtrip_tools.events.of_application import Event
from support.deployment import Deployment
from support.event_sources import GATEWAYS, HTTP_SOURCES, response_of, sent_by, with_header
from support.messages import call
from support.token_issuer import ISSUER, ONE, claims

ROOT = "/.well-known/oauth-protected-resource"
METADATA = f'resource_metadata="https://mcp.test{ROOT}/mcp"'
CLOCK = FakeClock()

server = Server("databases")


@server.tool(scopes=["db:read"])
def read() -> str:
    return "row"


@server.tool(scopes=["db:admin", "billing"])
def drop() -> str:
    return "gone"


deployment = Deployment(server, mode=AuthMode.BEARER, clock=CLOCK, replaced_settings={"token_issuer": ISSUER})


def answer(event: Event) -> tuple[int, str | None, Any]:
    """Return status, challenge and body. API Gateway gets the challenge under a second name, too."""
    response = response_of(deployment.invoke(event))
    challenge = response.headers.get("www-authenticate")
    is_of_gateway = detect(event) in [ADAPTERS[name] for name in ("http_api", *GATEWAYS)]
    assert response.headers.get("x-mcp-challenge") == (challenge if is_of_gateway else None)
    return response.status, challenge, json.loads(response.body)


def with_token(event: Event, *tokens: str) -> Event:
    return with_header(event, "authorization", *(f"Bearer {token}" for token in tokens))


@pytest.mark.parametrize("source", HTTP_SOURCES)
def test_every_source_passes_tokens_and_gets_challenges(source):
    first = 'scope="billing db:admin db:read"'
    good, late = (ONE.sign(claims(now)) for now in (CLOCK.now, CLOCK.now - 301))
    event, drops = sent_by(source, call("read")), sent_by(source, call("drop"))
    assert answer(event)[:2] == (401, f"Bearer {first}, {METADATA}")
    assert answer(with_token(event, late))[:2] == (401, f'Bearer error="invalid_token", {first}, {METADATA}')
    assert answer(with_token(event, good))[:2] == (200, None)
    insufficient = f'Bearer error="insufficient_scope", scope="db:admin billing", {METADATA}'
    assert answer(with_token(drops, good))[:2] == (403, insufficient)
