"""The errors of a call that has to ask or to continue, and has no way to do so with this client."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mcp_roundtrip.errors import MissingClientCapability, dotted_capabilities
from mcp_roundtrip.internal_errors import CallAborted
from mcp_roundtrip.journal import Journal
from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip.server.channels import signing_in_helps
from mcp_roundtrip.server.model import FeatureCall

_ASKABLE: Final = f"A client that supports elicitation in MCP {PROTOCOL_VERSION} can"


_SIGN_IN: Final = " If the user signs in, this client can show them a link to a page that asks."


def unaskable_error(call: FeatureCall, error: MissingClientCapability, *, asks_model: bool) -> CallAborted:
    """Return the error that quotes the questions, or names the capabilities, which the client lacks."""
    kind = call.feature.kind
    if error.lost:
        return too_late_error(call)
    if not error.questions:
        return CallAborted(
            _requirements_text(kind, error) + _SIGN_IN * signing_in_helps(call, error.required)
        )
    text = _cannot_ask_text(kind, map(_quote, error.questions.values()))
    if signing_in_helps(call, error.required):
        text += _SIGN_IN
    if asks_model and any(question.is_user_only() for question in error.questions.values()):
        text += " Only the user may answer it: an answer that a model passes on does not count."
    return CallAborted(text)


def cannot_ask_error(call: FeatureCall) -> CallAborted:
    """Return the error for a request that is no question to a user."""
    return CallAborted(_cannot_ask_text(call.feature.kind, []))


def too_late_error(call: FeatureCall) -> CallAborted:
    """Return the error for a question after steps, whose results are lost with the call."""
    return CallAborted(
        f"This {call.feature.kind} asks a question after it has started its work, and it cannot resume with "
        f"this client: do not call it again. {_ASKABLE} be asked."
    )


def out_of_time_error(call: FeatureCall) -> CallAborted:
    """Return the error for a call that needs more time than one request has."""
    return CallAborted(
        f"This {call.feature.kind} ran out of time, and cannot resume with this client. "
        f"A client that follows the rounds or the tasks of MCP {PROTOCOL_VERSION} can wait for it."
    )


def lost_effects(journal: Journal) -> list[str]:
    """Return the keys of the effects that a new call would repeat."""
    return [entry.key for entry in journal.entries if entry.kind.is_nonrepeatable]


def _requirements_text(kind: str, error: MissingClientCapability) -> str:
    if TASKS_EXTENSION in error.required.get("extensions", {}):
        return (
            f"This {kind} takes so long that it needs tasks, which this client cannot follow. "
            f"A client that supports tasks in MCP {PROTOCOL_VERSION} can."
        )
    needed = ", ".join(dotted_capabilities(error.required))
    return f"This {kind} needs a client with these capabilities: {needed}. {_ASKABLE} have them here."


def _cannot_ask_text(kind: str, questions: Iterable[str]) -> str:
    asked = "".join(f"\n- {question}" for question in questions)
    return f"This {kind} has to ask something that this client cannot be asked:{asked}\n{_ASKABLE} be asked."


def _quote(question: Any) -> str:
    params = question.params()
    parts = [params.get("message", question.method), params.get("url")]
    return " ".join(part for part in parts if part is not None)
