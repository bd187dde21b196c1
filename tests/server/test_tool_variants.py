"""The list of tools depends on how the client can be asked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("channels", [(), ("default",)])
@pytest.mark.parametrize(("has_table", "scope"), [(False, "public"), (True, "private")])
def test_a_list_is_public_if_no_question_takes_a_fallback_and_no_call_is_parked(channels, has_table, scope):
    made = Server("lists", channels=channels)

    @made.tool
    def asks(ctx: Context) -> str:
        return ctx.elicit("name", "Who?", str, default="nobody")

    @made.tool(channels=("app", "page", "model"))
    def plain(number: int) -> int:
        return number

    client = Deployment(made, user=None, has_table=has_table, capabilities=EVERYTHING)
    assert client.result("tools/list")["cacheScope"] == scope


ELICITATION = st.sampled_from([None, {}, {"form": {}}, {"url": {}}, {"form": {}, "url": {}}, "yes", []])
UI_EXTENSION = st.sampled_from(
    [None, {}, {"mimeTypes": []}, {"mimeTypes": ["text/html;profile=mcp-app"]}, {"mimeTypes": "x"}, 7]
)


@given(ELICITATION, UI_EXTENSION, st.booleans())
def test_every_tool_is_listed_for_every_client(elicitation, ui, signed_in):
    capabilities = {} if elicitation is None else {"elicitation": elicitation}
    if ui is not None:
        capabilities["extensions"] = {"io.modelcontextprotocol/ui": ui}
    listed = tools(capabilities, signed_in=signed_in)
    assert {"plain", "asks", "asks_model", "strict"} <= listed.keys()
    assert with_output(listed) >= {"plain"}
