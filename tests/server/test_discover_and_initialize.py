"""What `subscriptions/listen` refuses, and `server/discover` leaves out. The corpus has what they return."""

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.errors import INVALID_PARAMS
from mcp_roundtrip.protocol.constants import SUBSCRIPTIONS_LISTEN
from support.client_requests import APPS, TASKS
from support.deployment import Deployment

SERVER = Server("test", version="1")
SERVER.tool(name="lasting", task="optional")(lambda: "done")


@pytest.mark.parametrize("requested", [None, [], "all", 1, True])
def test_a_filter_that_is_no_object_is_refused(requested):
    client = Deployment(SERVER, user=None, capabilities=TASKS)
    assert client.refusal(SUBSCRIPTIONS_LISTEN, notifications=requested) == (400, INVALID_PARAMS)


def test_a_server_without_views_declares_none_to_a_client_that_shows_apps():
    declared = Deployment(SERVER, user=None, capabilities=APPS).result("server/discover")["capabilities"]
    assert declared == {"tools": {}, "logging": {}, **TASKS}


def test_notifications_of_tasks_need_a_client_that_declares_tasks():
    client = Deployment(SERVER, user=None, capabilities={})
    error = client.error(SUBSCRIPTIONS_LISTEN, notifications={"taskIds": []})
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": TASKS})
