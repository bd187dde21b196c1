"""Fill in the form of the question page, as a user does in a browser."""

import re
from collections.abc import Callable, Mapping
from html import unescape
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

from mcp_roundtrip.question_ui.fields import ChoiceField, DateTimeField, FormField, MultipleChoiceField
from mcp_roundtrip.question_ui.posted_form import ACTION, PageQuestion, make_questions
from mcp_roundtrip.tasks.question_page_tokens import QuestionLinks
from mcp_roundtrip_testing.task_table import TaskTable

PAGE_LINK: Final = re.compile(r"https?://\S+/questions\?token=[\w-]+")
"""The link to the question page in a text."""

_HIDDEN: Final = re.compile('<input type="hidden" name="([^"]*)" value="([^"]*)">')

Requests = Mapping[str, Mapping[str, Any]]


def fill_in(
    html: str, url: str, table: TaskTable, answer: Callable[[Requests], Mapping[str, Any] | None]
) -> str | None:
    """Return the body of the form, or None if `answer` has no responses to the questions of the page."""
    [token] = parse_qs(urlsplit(url).query)["token"]
    requests = QuestionLinks(table.tasks()).find(token).requests
    responses = answer(requests)
    if responses is None:
        return None
    pairs = [(name, unescape(value)) for name, value in _HIDDEN.findall(html)]
    actions = {response["action"] for response in responses.values()}
    if "accept" in actions:
        for question in make_questions(requests):
            pairs += _values(question, responses[question.key])
    unknown = [name for name, _ in pairs if f' name="{name}"' not in html]
    assert not unknown, f"the page has no controls {', '.join(unknown)}"
    return urlencode([*pairs, (ACTION, "accept" if "accept" in actions else actions.pop())])


def _values(question: PageQuestion, response: Mapping[str, Any]) -> list[tuple[str, str]]:
    chosen = [(question.action_name, response["action"])] if question.action_name else []
    content = response.get("content", {})
    entered = [
        (field.name, value)
        for field in question.fields
        if field.key in content
        for value in _entered(field, content[field.key])
    ]
    return [*chosen, *entered]


def _entered(field: FormField, value: Any) -> list[str]:
    """Return what a browser posts for a value."""
    match field:
        case MultipleChoiceField():
            return [_position(field, each) for each in value]
        case ChoiceField():
            return [_position(field, value)]
        case DateTimeField():
            local, offset = re.fullmatch(r"(.+?)(Z|[+-]\d\d:\d\d)", value).groups()  # type: ignore[union-attr]
            return [local, "+00:00" if offset == "Z" else offset]
    return [str(value)]


def _position(field: ChoiceField | MultipleChoiceField, value: Any) -> str:
    """Return what stands for an option; for a value that is none, an option that does not exist."""
    options = [option for option, _ in field.options]
    return str(options.index(value) if value in options else len(options))


def read_problem(html: str) -> str:
    """Return the text of what a page says is wrong, or else its whole text."""
    summary = re.search('(?s)<div class="summary".*?</div>', html)
    shown = summary[0] if summary else html.partition("<main>")[2]
    return " ".join(unescape(re.sub("<[^>]*>", " ", shown)).split())
