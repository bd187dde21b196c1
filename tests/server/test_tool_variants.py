"""The list of tools depends on how the client can be asked."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing import EVERYTHING
from support.client_requests import FORMS
from support.deployment import Deployment

UI = {"extensions": {"io.modelcontextprotocol/ui": {}}}


def server(**options):
    made = Server("lists", **options)

    @made.tool
    def plain(number: int) -> dict[str, int]:
        return {"number": number}

    @made.tool
    def asks(ctx: Context) -> dict[str, int]:
        return {"number": ctx.elicit("number", "Which?", int)}

    @made.tool(channels=("model", "default"))
    def asks_model(ctx: Context, word: str) -> dict[str, int]:
        return {word: ctx.elicit("number", "Which?", int)}

    @made.tool(channels=())
    def strict(ctx: Context) -> dict[str, int]:
        return {"number": ctx.elicit("number", "Which?", int)}

    return made


def tools(capabilities, *, signed_in=False):
    """Return the listed tools by name. The deployment has a table, and so the question page."""
    user = "ada" if signed_in else None
    listed = Deployment(server(), user=user, capabilities=capabilities).result("tools/list")
    assert listed["cacheScope"] == "private"
    return {tool["name"]: tool for tool in listed["tools"]}


def with_output(listed):
    return {name for name, tool in listed.items() if "outputSchema" in tool}


@pytest.mark.parametrize(
    ("capabilities", "signed_in", "expected"),
    [
        (EVERYTHING, True, {"plain", "asks", "asks_model", "strict"}),
        (FORMS, True, {"plain", "asks_model", "strict"}),
        (FORMS, False, {"plain", "asks_model", "strict"}),
        ({}, True, {"plain"}),
        ({}, False, {"plain"}),
        (UI, False, {"plain"}),
        ({**FORMS, **UI}, False, {"plain", "asks_model", "strict"}),
        ({**EVERYTHING, **UI}, True, {"plain", "asks", "asks_model", "strict"}),
    ],
    ids=(
        *("everything", "URLs on a page", "URLs on a page, anonymous", "page"),
        *("page, anonymous", "app", "URLs in an app", "everything and apps"),
    ),
)
def test_a_tool_that_may_ask_through_a_fallback_or_need_another_call_has_no_output_schema(
    capabilities, signed_in, expected
):
    assert with_output(tools(capabilities, signed_in=signed_in)) == expected
