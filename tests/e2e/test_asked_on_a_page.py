"""A client that cannot show questions, the link in its results, and a user who answers in a browser."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import mcp_types as types
import pytest
from anyio.to_thread import run_sync
from mcp.client import Client

from support.mailbox import Mailbox, decide
from support.page_user import visit_page
from support.served_application import Served, serve_anonymously, serve_for_alice

if TYPE_CHECKING:
    from support.browser import RunProgram

pytest_plugins = ["support.browser"]
pytestmark = pytest.mark.anyio

LINK = re.compile(r"http://127\.0\.0\.1:\d+/mcp/questions\?token=[\w-]{43}\b")
FIRST_OPTION = (("press", "Tab Space"), ("submit", "Enter"))
"""Choose the first radio button of a form, and send it, with the keyboard."""


def signed_in() -> AbstractContextManager[Served]:
    """Serve callers whose client sends Alice's token; her browser sends none."""
    return serve_for_alice(Mailbox())


def text_of(result: types.CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, types.TextContent))


def link_in(result: types.CallToolResult) -> str | None:
    found = LINK.search(text_of(result))
    return found and found[0]


async def visit(run_in_browser: RunProgram, link: str | None, *steps: Any) -> list[Any]:
    """Open a link and follow steps; return what they saw, first the status."""
    return list((await run_sync(visit_page, run_in_browser, ("goto", link), *steps))["seen"])


# Only the session id tells anonymous callers apart.
@pytest.mark.parametrize(
    ("mode", "serving"),
    [("legacy", serve_anonymously), ("legacy", signed_in), ("auto", signed_in)],
    ids=["legacy-anonymous", "legacy-signed_in", "auto-signed_in"],
)
async def test_a_call_is_answered_in_the_browser_and_returns_its_result(run_in_browser, mode, serving):
    arguments: dict[str, object] = {"name": "orders"}
    asked: dict[str, str] = {}
    with serving() as served:
        async with Client(served.url, mode=mode) as client:
            for _ in range(8):
                result = await client.call_tool("provision_database", arguments)
                assert not result.is_error
                link = link_in(result)
                if link is None:
                    break
                looks = (("text", "h1"), ("text", "h2, legend"))
                seen = await visit(run_in_browser, link, *looks, *FIRST_OPTION, ("text", "h1"))
                status, title, question, *_, after = seen
                assert (status, title, after) == (200, "Question from provision_database", "Thank you")
                asked[link] = question
            again = await client.call_tool("provision_database", arguments)
    assert len(asked) == 3, "each question had a link of its own"
    assert [question.split()[0] for question in asked.values()] == ["Which", "In", "orders"]
    assert result.structured_content is not None or "orders" in text_of(result)
    assert text_of(again) == text_of(result), "a lost response can be fetched again"
    tokens = [link.partition("token=")[2] for link in asked]
    assert not [line for line in served.lines if any(token in line for token in tokens)]
    assert any("question_page_answered" in line for line in served.lines)


async def test_a_user_who_declines_on_the_page_ends_the_call(run_in_browser):
    arguments: dict[str, object] = {"name": "orders"}
    with serve_anonymously() as served:
        async with Client(served.url, mode="legacy") as client:
            link = link_in(await client.call_tool("provision_database", arguments))
            seen = await visit(run_in_browser, link, ("click", "Decline"), ("text", "h1"))
            result = await client.call_tool("provision_database", arguments)
    assert seen[-1] == "Thank you"
    assert result.is_error
    assert text_of(result) == "The user declined to answer 'size'."


async def test_a_url_question_waits_until_the_page_behind_it_is_done(run_in_browser):
    mailbox = Mailbox()
    arguments: dict[str, object] = {"purpose": "Books", "amount_eur": 12}
    with serve_for_alice(mailbox) as served:
        async with Client(served.url, mode="legacy") as client:
            link = link_in(await client.call_tool("request_approval", arguments))
            opening = (("text", "code"), ("open", "in a new tab"), ("click", "I have finished"))
            seen = await visit(run_in_browser, link, *opening, ("text", "h1"))
            decide(mailbox.link(), approved=True)
            result = await client.call_tool("request_approval", arguments)
    _, shown, (opened, facts), _, after = seen
    assert opened == shown
    assert facts == [True, ""], "the new tab knows neither the question page nor its address"
    assert after == "Thank you"
    assert result.structured_content is None or result.structured_content["approved"]
    assert '"approved":true' in text_of(result).replace(" ", "")
