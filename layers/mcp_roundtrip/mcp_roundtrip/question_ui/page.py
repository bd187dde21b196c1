"""Render the question page: HTML in ASCII, without scripts and without anything from another origin.

Every text of a tool or a user passes `escape`, and is element content or the value of a quoted attribute.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct, field

from mcp_roundtrip.question_ui.controls import (
    element_id,
    escape,
    parse_web_address,
    render_boxes,
    render_control,
    render_group,
)
from mcp_roundtrip.question_ui.posted_form import (
    ACCEPT,
    ACTION,
    CANCEL,
    DECLINE,
    VERSION,
    PageQuestion,
    Values,
)

TOKEN: Final = "token"  # noqa: S105 - a name
"""The name of the parameter with the link's token, in the query and in the form."""

_NOTE: Final = (
    "An assistant that you use called this tool, and the tool needs your answer to continue. Answer only if "
    "you expect this question. Do not enter passwords or other secrets."
)


class FormPage(Struct, frozen=True):
    """A page with a form. `values` and `errors` are by field name, `problem` is about the whole form."""

    server: str
    tool: str
    token: str
    version: str
    questions: Sequence[PageQuestion]
    values: Values
    errors: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def render_form(page: FormPage) -> str:
    title = f"Question from {page.tool}"
    sections = "".join(_section(number, each, page) for number, each in enumerate(page.questions))
    content = (
        f'<p class="note" dir="auto">{escape(page.server)}</p><h1 dir="auto">{escape(title)}</h1>'
        f'<p class="note">{_NOTE}</p>{_summary(page)}'
        '<form method="post" action="?" autocomplete="off" novalidate>'
        f'<input type="hidden" name="{TOKEN}" value="{escape(page.token)}">'
        f'<input type="hidden" name="{VERSION}" value="{escape(page.version)}">'
        f"{sections}{_actions(page.questions)}</form>"
    )
    return render_document(f"Error: {title}" if page.errors or page.problem else title, content)


def render_notice(title: str, text: str) -> str:
    """Return a page without a form."""
    return render_document(title, f'<h1>{escape(title)}</h1><p dir="auto">{escape(text)}</p>')


def render_document(title: str, content: str) -> str:
    """Return a page with this content, in the style that `STYLE_SOURCE` allows."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{content}</main></body></html>"
    )


def _summary(page: FormPage) -> str:
    if not page.errors and not page.problem:
        return ""
    labels = {each.name: each.title for question in page.questions for each in question.fields}
    labels |= {each.action_name: each.message for each in page.questions}
    items = "".join(
        f'<li><a href="#{element_id(name)}">{_joined(labels[name], error)}</a></li>'
        for name, error in page.errors.items()
    )
    problem = f"<p>{escape(page.problem)}</p>" if page.problem else ""
    return (
        '<div class="summary" role="alert" tabindex="-1" autofocus aria-labelledby="errors">'
        f'<h2 id="errors">The answer was not sent yet</h2>{problem}<ul>{items}</ul></div>'
    )


def _joined(label: str, error: str) -> str:
    """Return markup in which each text has its own direction."""
    colon = "" if label.endswith(("?", "!", ".", ":")) else ":"
    return f"<bdi>{escape(label)}</bdi>{colon} <bdi>{escape(error)}</bdi>"


def _section(number: int, question: PageQuestion, page: FormPage) -> str:
    controls = "".join(
        render_control(each, page.values.get(each.name, ()), page.errors.get(each.name, ""))
        for each in question.fields
    )
    content = controls + ("" if question.url is None else _url(question.url))
    if name := question.action_name:
        content += _choice_of_action(name, question, page.values.get(name, ()), page.errors.get(name, ""))
    if question.is_single_field:  # its label is the message
        return f"<section>{content}</section>"
    heading = f'<h2 id="q{number}" dir="auto">{escape(question.message)}</h2>'
    return f'<section aria-labelledby="q{number}">{heading}{content}</section>'


def _choice_of_action(name: str, question: PageQuestion, chosen: Sequence[str], error: str) -> str:
    if question.url is None:
        return render_boxes("checkbox", name, [(DECLINE, "Decline this question")], chosen)
    options = [(ACCEPT, "I have finished on that page"), (DECLINE, "I decline")]
    boxes = render_boxes("radio", name, options, chosen, " required")
    return render_group(name, "Your answer", [], boxes, error)


def _url(url: str) -> str:
    link = parse_web_address(url)
    if link is None:
        return (
            "<p>Open this address, if you know the program that it belongs to:</p>"
            f'<p class="address"><code dir="ltr">{escape(url)}</code></p>'
        )
    address = escape(link.url)
    return (
        f'<p><a href="{address}" target="_blank" rel="noopener noreferrer">Open {escape(link.host)} '
        "in a new tab</a></p>"
        f'<p class="note">The full address is:</p><p class="address"><code dir="ltr">{address}</code></p>'
    )


def _actions(questions: Sequence[PageQuestion]) -> str:
    several = len(questions) > 1
    accept = "I have finished" if not several and questions[0].url is not None else "Send"
    decline = "Decline all" if several else "Decline"
    # The first button is the one that the Enter key presses.
    return (
        f'<div class="actions"><button class="main" name="{ACTION}" value="{ACCEPT}">{accept}</button>'
        f'<button name="{ACTION}" value="{DECLINE}">{decline}</button>'
        f'<button name="{ACTION}" value="{CANCEL}">Cancel</button></div>'
        '<p class="hint">Decline: the tool learns that you do not want to answer. Cancel: it learns that '
        "you dismissed the question.</p>"
    )


class Notice(NamedTuple):
    """A page without a form."""

    status: int
    title: str
    text: str


NOTICES: Final[Mapping[str, Notice]] = {
    "answered": Notice(
        200,
        "Thank you",
        "This question has been answered. Return to the conversation, and tell the assistant that you are "
        "done.",
    ),
    "late": Notice(
        409,
        "Already answered",
        "This question was answered before, perhaps in another tab. What you sent now was not stored. "
        "Return to the conversation.",
    ),
    "expired": Notice(
        410,
        "Link expired",
        "This link has expired. Return to the conversation, and ask the assistant to call the tool again.",
    ),
    "ended": Notice(
        410,
        "Call ended",
        "The call that asked this question has ended, and needs no answer. Return to the conversation.",
    ),
    "unknown": Notice(
        404,
        "Link not found",
        "There is no question at this address. Open the whole link from the conversation. If the link is "
        "old, ask the assistant to call the tool again.",
    ),
    "changed": Notice(
        409,
        "Question changed",
        "The call asks another question now. Nothing was stored. Open the link again, and answer what it "
        "shows.",
    ),
    "malformed": Notice(
        400,
        "Form not readable",
        "What was sent is not the form of this page. Nothing was stored. Open the link from the "
        "conversation again.",
    ),
    "foreign": Notice(
        403,
        "Sent by another site",
        "Another site sent this form. Nothing was stored. Open the link from the conversation itself.",
    ),
    "method": Notice(405, "Method not allowed", "This page accepts GET and POST."),
    "media_type": Notice(
        415, "Form not readable", "This page accepts forms of the type application/x-www-form-urlencoded."
    ),
    "too_large": Notice(
        413, "Answer too large", "The answer is too large. Nothing was stored. Send a shorter one."
    ),
    "unshowable": Notice(
        500,
        "Question too large",
        "This question is too large for a page. Return to the conversation, and tell the assistant.",
    ),
    "failed": Notice(
        500,
        "Something went wrong",
        "The server has logged the reason. Return to the conversation, and tell the assistant.",
    ),
    "unavailable": Notice(
        503,
        "Temporarily unavailable",
        "The server cannot reach its store at the moment. Wait a moment, and try again.",
    ),
}
"""The pages by the outcome of a request."""

STYLE: Final = "\n" + Path(__file__).with_suffix(".css").read_text(encoding="utf-8")

STYLE_SOURCE: Final = f"'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'"
"""The source expression of `STYLE` for `style-src` (CSP Level 3)."""
