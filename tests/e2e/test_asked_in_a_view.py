"""The question app in a browser, in a host of MCP Apps, before the front door of the example over HTTP."""

from typing import Any

from mcp_roundtrip.protocol.constants import META_CLIENT_CAPABILITIES, META_PROTOCOL_VERSION, PROTOCOL_VERSION
from support.client_requests import APPS, QUESTIONS
from support.mailbox import Mailbox
from support.question_app import view
from support.served_application import Served, serve_for_alice

pytest_plugins = ["support.question_app"]

META = {META_PROTOCOL_VERSION: PROTOCOL_VERSION, META_CLIENT_CAPABILITIES: APPS}


def host(served: Served) -> dict[str, Any]:
    return {"url": served.url, "headers": {}, "meta": META}


CHOOSE = """
(() => {
  const field = document.querySelector("[type=radio], select");
  if (field.type === "radio") field.click(); else field.selectedIndex = 1;
})()
"""

PROVISIONED = (
    ("call", "provision_database", {"name": "orders"}),
    ("see", "Which size should orders have?"),
    ("evaluate", CHOOSE),
    ("click", "Send"),
    ("see", "In which region should orders be?"),
    ("evaluate", CHOOSE),
    ("click", "Send"),
    ("see", "Keep it?"),
    ("check", "Yes"),
    ("click", "Send"),
    ("see", "The assistant can go on."),
)


def test_a_signed_in_user_answers_in_a_view_and_the_same_call_returns_the_result(show):
    with serve_for_alice(Mailbox()) as served:
        again = ("call", "provision_database", {"name": "orders"})
        log = show(*PROVISIONED, again, server=host(served))
    first, *_, last = [value for value in log["values"] if isinstance(value, dict)]
    assert first["_meta"][QUESTIONS]["status"] == "asking"
    assert last["structuredContent"]["name"] == "orders"
    assert last["structuredContent"]["host"]
    assert last["structuredContent"]["host"] in log["contexts"][0]["content"][1]["text"]
    assert "Call provision_database again " in log["messages"][0]["content"][0]["text"]
    assert log["complaints"] == []


def test_an_anonymous_user_answers_in_a_view(show, served):
    log = show(*PROVISIONED, server=host(served))
    assert '"name":"orders"' in log["contexts"][0]["content"][1]["text"].replace(" ", "")


def test_the_view_of_the_endpoint_is_the_one_that_the_tests_show(show, served):
    log = show(("read", "ui://mcp-roundtrip/questions"), server=host(served))
    (content,) = log["values"][0]["contents"]
    assert content["text"] == view()
