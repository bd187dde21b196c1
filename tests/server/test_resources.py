"""Resources by URI and by template: their contents, and missing ones."""

from typing import Any

import pytest

from mcp_roundtrip import ResourceNotFound, Server
from mcp_roundtrip_testing import Player

server = Server("resources")


@server.resource("test://text")
def text() -> str:
    """Some text."""
    return "hello"


@server.resource("repo://{owner}/{number}{?state}")
def issue(owner: str, number: int, state: str = "open") -> dict[str, Any]:
    """An issue."""
    if number > 100:
        raise ResourceNotFound
    return {"owner": owner, "next": number + 1, "state": state}


@pytest.fixture
def play():
    return Player(server)


@pytest.mark.parametrize(
    ("uri", "contents"),
    [
        ("repo://ann/4", '{"owner": "ann", "next": 5, "state": "open"}'),
        ("repo://a%2Fb/4?state=50%25", '{"owner": "a/b", "next": 5, "state": "50%"}'),
    ],
)
def test_variables_are_decoded_and_converted_to_their_annotations(play, uri, contents):
    assert play.read(uri).contents == [{"uri": uri, "mimeType": "application/json", "text": contents}]


REPOS = ("ann/4/5", "ann/four", "ann/101", "%zz/4")
MISSING = ["test://nothing", "test://TEXT/", "", *(f"repo://{each}" for each in REPOS)]


@pytest.mark.parametrize("uri", MISSING)
def test_the_error_for_a_missing_resource_names_its_uri(play, uri):
    refused = play.request("resources/read", uri=uri)["error"]
    assert (refused["code"], refused["data"]) == (-32602, {"uri": uri})
