"""Audit records: which caller did what, with which outcome. No arguments, answers, results, tokens or states.

An operation has one record: a request that calls a feature or changes a task, a pass of a worker, a form of
the question page, or a refusal. A record has up to two lines with the same id:

- `begun` is stored before any code of the feature runs, or anything of the task changes.
- `ended` is stored after the outcome is known, before the response leaves. It has all members of `begun`.

A record without an `ended` line has an unknown outcome: the process was lost. A refusal has no `begun` line.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, field, to_builtins

from mcp_roundtrip.auth.callers import Principal, user_binding
from mcp_roundtrip.engine.journal import Entry, Kind
from mcp_roundtrip.observing.logs_and_metrics import encode_line

SCHEMA: Final = 1
"""The version of the JSON form. It changes when a member is removed or gets another meaning."""

MAX_ITEMS: Final = 100
"""The limit of `asked`, `answered` and `steps`. A member `<list>_omitted` has the number of further items."""

MAX_TEXT: Final = 256
"""The limit of characters of a text that the client chooses."""


class AskedQuestion(Struct, frozen=True):
    """A question that was asked: its key, the method of its request, and the channel that carried it."""

    key: str
    method: str
    via: str


class Answer(Struct, frozen=True):
    """An answer that counted. `action` is "accept", "decline", "cancel", "default" or "provided"."""

    key: str
    action: str
    via: str


class AuditRecord(Struct, frozen=True):
    """One line of a record. Members that are None or empty are omitted, except `principal`.

    `record` is the id that the lines of one record share. `time_ms` is in epoch milliseconds.
    `principal`, `client`: the members that identify the caller and its program.
    `scopes_used` are those of the granted scopes that satisfy the required ones.
    `fields` are those that hooks add.
    """

    record: str
    phase: str
    time_ms: int
    source: Mapping[str, str]
    principal: Mapping[str, str] | None = None
    client: Mapping[str, str] | None = None
    protocol_version: str | None = None
    method: str | None = None
    feature_kind: str | None = None
    feature: str | None = None
    scopes_required: Sequence[str] = ()
    scopes_used: Sequence[str] = ()
    correlation_id: str | None = None
    trace_id: str | None = None
    xray_trace_id: str | None = None
    flow: str | None = None
    task: str | None = None
    task_ttl_ms: int | None = None
    is_worker: bool = False
    round: int | None = None
    outcome: str | None = None
    reason: str | None = None
    code: int | None = None
    status: int | None = None
    asked: Sequence[AskedQuestion] = ()
    answered: Sequence[Answer] = ()
    steps: Sequence[str] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    duration_ms: float | None = None

    def to_json(self) -> dict[str, Any]:
        members = {name: getattr(self, name) for name in self.__struct_fields__}
        members["worker"] = members.pop("is_worker") or None
        for name in ("asked", "answered", "steps"):
            members |= _bounded(name, to_builtins(members[name]))
        time = _iso_timestamp(members.pop("time_ms"))
        first = {"schema": SCHEMA, "record": self.record, "phase": self.phase, "time": time}
        found = {**first, **members.pop("source"), **members}
        present = {name: member for name, member in found.items() if member not in (None, [], (), {}, "")}
        return {**present, "principal": self.principal}

    def to_line(self) -> str:
        """Return the JSON text, which fits into a log event: see `encode_line`."""
        return encode_line(self.to_json())


def _bounded(name: str, items: Sequence[Any]) -> dict[str, Any]:
    if len(items) <= MAX_ITEMS:
        return {name: list(items)}
    return {name: list(items[:MAX_ITEMS]), f"{name}_omitted": len(items) - MAX_ITEMS}


def _iso_timestamp(epoch_ms: int) -> str:
    moment = datetime.fromtimestamp(epoch_ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- the caller ---------------------------------------------------------------------------------------------


def plain_caller(principal: Principal) -> dict[str, str]:
    """Return the members that identify a caller by its subject."""
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
    """Return name and version of an Implementation object, which the client chooses, cut to MAX_TEXT."""
    if not isinstance(info, Mapping):
        return None
    found = {name: info.get(name) for name in ("name", "version")}
    return {name: text[:MAX_TEXT] for name, text in found.items() if isinstance(text, str) and text} or None


# -- the journal --------------------------------------------------------------------------------------------


def answers_of(entries: Iterable[Entry], channels: Mapping[str, str]) -> list[Answer]:
    """Return how the questions among these entries were answered; `channels` has the channel by key."""
    answers = []
    for entry in entries:
        if entry.kind is Kind.DEFAULT:
            answers.append(Answer(entry.key, "default", "default"))
        elif entry.kind is Kind.ANSWER:
            answers.append(Answer(entry.key, action_of(entry.value), channels.get(entry.key, "client")))
    return answers


def action_of(response: Any) -> str:
    """Return the action of an ElicitResult; "provided" for the result of any other request."""
    action = response.get("action") if isinstance(response, Mapping) else None
    return action if action in ("accept", "decline", "cancel") else "provided"
