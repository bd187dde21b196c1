"""Audit records: which caller did what, with which outcome. No arguments, answers, results, tokens or states.

An operation has one record: a request that calls a feature or changes a task, a pass of a worker, a form of
the question page, or a refusal. A record has up to two lines with the same id:

- `begun` is stored before any code of the feature runs, or the task changes. A refusal has no such line.
- `ended` is stored after the outcome is known, before the response leaves. It has all members of `begun`.

A record without an `ended` line has an unknown outcome: the process was lost.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final

from mcp_roundtrip.auth.callers import Principal, user_binding
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.observing.logs_and_metrics import encode_line

SCHEMA: Final = 1
"""The version of the JSON form. A member that is removed or gets another meaning changes it."""

MAX_ITEMS: Final = 100
"""The limit of `asked`, `answered` and `steps`. `<list>_omitted` has the number of further items."""

MAX_TEXT: Final = 256
"""The limit of characters of a text that the client chooses."""


def audit_line(members: Mapping[str, Any]) -> str:
    """Return a line of a record as JSON, which fits into a log event (`encode_line`).

    docs/reference/audit-record.schema.json describes the members. Empty ones are omitted, except `principal`.
    """
    bounded = dict(members)
    for name in ("asked", "answered", "steps"):
        items = members.get(name, ())
        bounded[name] = items[:MAX_ITEMS]
        bounded[f"{name}_omitted"] = max(0, len(items) - MAX_ITEMS) or None
    present = {name: member for name, member in bounded.items() if member not in (None, [], (), {}, "")}
    return encode_line({"schema": SCHEMA, **present, "principal": members.get("principal")})


# -- the caller ---------------------------------------------------------------------------------------------


def plain_caller(principal: Principal) -> dict[str, str]:
    """Return the members that identify a caller by the subject."""
    return {**_public_members(principal), "subject": principal.subject}


def hashed_caller(principal: Principal, key: bytes) -> dict[str, str]:
    """Return the members that identify a caller by an HMAC-SHA-256 of kind, issuer and subject.

    The client is not part of it, so that the records of one person can be joined across clients.
    """
    binding = user_binding(principal) or ""
    mac = hmac.digest(key, binding.encode(), "sha256")
    return {**_public_members(principal), "subject_hash": urlsafe_b64encode(mac[:18]).decode()}


def _public_members(principal: Principal) -> dict[str, str]:
    members = {"kind": principal.kind, "issuer": principal.issuer, "client_id": principal.client_id}
    return {name: member for name, member in members.items() if member is not None}


def client_members(info: Any) -> dict[str, str] | None:
    """Return name and version in a `clientInfo`, cut to MAX_TEXT."""
    if not isinstance(info, Mapping):
        return None
    found = {name: info.get(name) for name in ("name", "version")}
    return {name: text[:MAX_TEXT] for name, text in found.items() if isinstance(text, str) and text} or None


# -- the journal --------------------------------------------------------------------------------------------


def answers_of(entries: Iterable[Entry], channels: Mapping[str, str]) -> list[dict[str, str]]:
    """Return how the questions among these entries were answered, with the channel by key."""
    answers = []
    for entry in entries:
        if entry.kind is Kind.DEFAULT:
            answers.append({"key": entry.key, "action": "default", "via": "default"})
        elif entry.kind is Kind.ANSWER:
            via = channels.get(entry.key, "client")
            answers.append({"key": entry.key, "action": action_of(entry.value), "via": via})
    return answers


def action_of(response: Any) -> str:
    """Return the action of an ElicitResult; "provided" for the result of any other request."""
    action = response.get("action") if isinstance(response, Mapping) else None
    return action if action in ("accept", "decline", "cancel") else "provided"
