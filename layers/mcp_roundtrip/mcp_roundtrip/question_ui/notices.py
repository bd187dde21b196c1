"""The texts of the pages without a form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Notice(NamedTuple):
    """A page that only says something."""

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
