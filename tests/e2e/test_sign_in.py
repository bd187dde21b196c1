"""template.yaml with AuthMode bearer under `make run`: front door and owners verify the same token."""

import pytest

from support.authorization_server import PATH
from support.oauth_client import MemoryTokenStorage, post_call, signed_in_client
from support.served_application import serve_with_issuer

WEATHER = {"location": "Tokyo"}


@pytest.fixture(scope="module")
def running():
    with serve_with_issuer() as served:
        yield served


@pytest.mark.anyio
async def test_the_official_client_signs_in_at_the_front_door(running):
    storage = MemoryTokenStorage()
    async with signed_in_client(running.url, storage) as client:
        result = await client.call_tool("get_weather", WEATHER)
    assert result.structured_content is not None
    assert "Tokyo" in result.structured_content["place"]
    assert storage.tokens is not None
    assert storage.tokens.access_token not in "".join(running.lines)
    # The process of the front door and the process of the owner fetched the keys once each.
    assert running.issuer.asked[f"{PATH}/keys"] == 2


def test_a_token_for_another_endpoint_is_refused(running):
    token = running.issuer.token
    tokens = [token(running.url), token("https://other.test/mcp"), token(running.url, exp=1)]
    answers = [post_call(running.url, each, "get_weather", **WEATHER) for each in tokens]
    assert [answer.status_code for answer in answers] == [200, 401, 401]
