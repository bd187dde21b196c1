"""What a server declares, and what `subscriptions/listen` refuses."""

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.errors import INVALID_PARAMS
from mcp_roundtrip.protocol.constants import SUBSCRIPTIONS_LISTEN, TASKS_EXTENSION
from mcp_roundtrip_testing.http_requests import read_messages
from support.client_requests import TASKS
from support.deployment import Deployment

SERVER = Server("test", version="1")
SERVER.tool(name="lasting", task="optional")(lambda: "done")


def test_a_server_declares_what_it_has():
    full = Server("full")
    full.prompt("ask")(lambda: "Ask.")
    full.resource("docs://all", name="all")(lambda: "all")
    always = {"tools": {}, "logging": {}}
    for server, more in (
        (SERVER, {"extensions": {TASKS_EXTENSION: {}}}),
        (full, {"prompts": {}, "resources": {}, "completions": {}}),
    ):
        found = Deployment(server, user=None).result("server/discover")
        assert found["capabilities"] == always | more
        assert found["supportedVersions"] == ["2026-07-28"]


OF_LISTS = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
OF_ITEMS = ("resourceSubscriptions", "taskIds")


@pytest.mark.parametrize(
    ("requested", "named"),
    [
        *((requested, "notifications") for requested in (None, [], "all", 1, True)),
        *(({member: value}, f"notifications.{member}") for member in OF_LISTS for value in (1, "true", [])),
        *(
            ({member: value}, f"notifications.{member}")
            for member in OF_ITEMS
            for value in (True, "file:///a", {}, [1], ["a", None])
        ),
    ],
)
def test_a_filter_or_a_member_of_another_type_is_refused_by_name(requested, named):
    client = Deployment(SERVER, user=None, capabilities=TASKS)
    response = client.request(SUBSCRIPTIONS_LISTEN, notifications=requested)
    [answer] = read_messages(response)
    assert (response.status, answer["error"]["code"]) == (400, INVALID_PARAMS)
    assert named in answer["error"]["message"]
