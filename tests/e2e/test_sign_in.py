"""template.yaml with AuthMode bearer under `make run`: front door and owners verify the same token."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
import pytest

from mcp_roundtrip_tools.run import serve
from support.authorization_server import PATH, AuthorizationServer, authorization_server
from support.messages import call, headers
from support.oauth_client import WITHIN_S, MemoryTokenStorage, signed_in_client
from support.served_application import FRONT_DOOR, TEMPLATE

WEATHER = {"location": "Tokyo"}


@dataclass
class Running:
    url: str
    issuer: AuthorizationServer
    lines: list[str]

    def post(self, token: str) -> int:
        body = call("get_weather", WEATHER)
        given = {**headers(body), "authorization": f"Bearer {token}"}
        return httpx2.post(self.url, content=json.dumps(body), headers=given, timeout=WITHIN_S).status_code


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url, lines = f"http://127.0.0.1:{port}{FRONT_DOOR}", list[str]()
    with authorization_server() as issuer:
        parameters = {"AuthMode": "bearer", "TokenIssuer": issuer.issuer, "EndpointUri": url}
        with serve(TEMPLATE, port=port, parameters=parameters, log=lines.append):
            yield Running(url, issuer, lines)


@pytest.mark.anyio
async def test_the_official_client_signs_in_at_the_front_door(running: Running) -> None:
    storage = MemoryTokenStorage()
    async with signed_in_client(running.url, storage) as client:
        result = await client.call_tool("get_weather", WEATHER)
    assert result.structured_content is not None
    assert "Tokyo" in result.structured_content["place"]
    assert storage.tokens is not None
    assert storage.tokens.access_token not in "".join(running.lines)
    # The process of the front door and the process of the owner fetched the keys once each.
    assert running.issuer.asked[f"{PATH}/keys"] == 2


def test_a_token_for_another_endpoint_is_refused(running: Running) -> None:
    assert running.post(running.issuer.token(running.url)) == 200
    assert running.post(running.issuer.token("https://other.test/mcp")) == 401
    assert running.post(running.issuer.token(running.url, exp=1)) == 401
