"""Questions behind a link, and answers to them."""

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.tasks.question_page_links import AnswerState, QuestionLinks


def form(schema: Mapping[str, Any], message: str = "How large?") -> dict[str, Any]:
    params = {"mode": "form", "message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


def url(address: str, message: str = "Sign in") -> dict[str, Any]:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": message, "url": address}}


def answer_link(links: QuestionLinks, token: str, responses: Mapping[str, Any]) -> AnswerState:
    return links.answer(links.find(token), responses)
