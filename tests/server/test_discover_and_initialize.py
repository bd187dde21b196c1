"""What `server/discover` declares, and how `subscriptions/listen` ends."""

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip.errors import INVALID_PARAMS
from mcp_roundtrip.protocol.constants import SUBSCRIPTIONS_LISTEN
from mcp_roundtrip_testing.http_requests import read_messages
from support.client_requests import TASKS
from support.deployment import Deployment

SERVER = Server("test", version="1")
SERVER.tool(name="lasting", task="optional")(lambda: "done")


@pytest.mark.parametrize("requested", [None, [], "all", 1, True])
def test_a_filter_that_is_no_object_is_refused(requested):
    client = Deployment(SERVER, user=None, capabilities=TASKS)
    assert client.refusal(SUBSCRIPTIONS_LISTEN, notifications=requested) == (400, INVALID_PARAMS)


def test_a_subscription_is_acknowledged_first_with_no_notification_type_and_ends():
    client = Deployment(SERVER, user=None, capabilities={})
    requested = {"toolsListChanged": True, "resourceSubscriptions": [], "taskIds": None, "other": 1}
    response = client.request(SUBSCRIPTIONS_LISTEN, id="listening", notifications=requested)
    acknowledged, ended = read_messages(response)
    tag = {"io.modelcontextprotocol/subscriptionId": "listening"}
    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"] == {"_meta": tag, "notifications": {}}
    assert (ended["id"], ended["result"]["resultType"]) == ("listening", "complete")
    assert ended["result"]["_meta"].items() >= tag.items()


def test_notifications_of_tasks_need_a_client_that_declares_tasks():
    client = Deployment(SERVER, user=None, capabilities={})
    error = client.error(SUBSCRIPTIONS_LISTEN, notifications={"taskIds": []})
    assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": TASKS})


def test_logging_is_declared_and_what_the_server_has():
    def greet(name: str) -> str:
        return f"Hello, {name}"

    full = Server("full")
    full.tool("lasting", task="optional")(lambda: "done")
    full.prompt(greet)
    full.completion("greet", "name")(lambda typed: ["Ada"])
    full.resource("docs://terms", name="terms")(lambda: "None")
    served = {"prompts": {}, "resources": {}, "completions": {}, **TASKS}
    for server, others in ((full, served), (Server("plain"), {})):
        declared = Deployment(server, user=None).result("server/discover")["capabilities"]
        assert declared == {"tools": {}, "logging": {}, **others}
