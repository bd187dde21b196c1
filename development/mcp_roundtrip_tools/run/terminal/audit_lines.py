"""Audit records in the terminal: one short line for each line of a record (docs/reference/audit.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

_NOTE: Final = re.compile(r"\[[^\]\s]+\] (\{.*\})")
"""The note of a stored log event: its log group, and the message."""


def audit_line(note: str) -> str | None:
    """Return the short form of the audit record in a note; None if the note has none."""
    found = _NOTE.fullmatch(note)
    try:
        record = json.loads(found[1]) if found else None
    except ValueError:
        return None
    if not isinstance(record, dict) or not {"schema", "record", "phase"} <= record.keys():
        return None
    return " · ".join(_words(record))


def _words(record: Mapping[str, Any]) -> Iterator[str]:
    subject = record.get("feature") or record.get("method") or "request"
    yield f"audit {record['phase']} {subject}"
    principal = record.get("principal") or {}
    yield principal.get("subject") or principal.get("subject_hash") or "anonymous"
    if "outcome" in record:
        yield str(record["outcome"])
    if "reason" in record:
        yield str(record["reason"])
    for name in ("asked", "answered"):
        if questions := record.get(name):
            yield f"{name} " + ", ".join(map(_question, questions))
    if steps := record.get("steps"):
        yield "ran " + ", ".join(steps)


def _question(question: Mapping[str, str]) -> str:
    """Return the key, how it was answered, and the channel."""
    words = [question["action"]] if "action" in question else []
    return f"{question['key']} ({', '.join([*words, question['via']])})"
