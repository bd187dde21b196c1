"""Check a text against the length and the format of its field, in bounded time.

The checks are no stricter than the formats, because the server validates each answer again: they let the user
correct a slip before the form is gone.
"""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Final, Protocol

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")


class TextRules(Protocol):
    """The constraints of a text."""

    @property
    def format(self) -> str | None: ...
    @property
    def min_length(self) -> int: ...
    @property
    def max_length(self) -> int | None: ...


def check_text(text: str, rules: TextRules) -> str | None:
    """Return what to enter instead of a text that breaks a rule; None if it breaks none."""
    if len(text) < rules.min_length:
        return f"Enter at least {rules.min_length} characters: there are {len(text)}."
    if rules.max_length is not None and len(text) > rules.max_length:
        return f"Enter at most {rules.max_length} characters: there are {len(text)}."
    if rules.format is not None and (problem := _check_format(text, rules.format)):
        return problem
    return None


def _check_format(text: str, name: str) -> str | None:
    match name:
        case "email":
            return None if _EMAIL.fullmatch(text) else "Enter an e-mail address, such as name@example.com."
        case "uri":
            return None if _URI.fullmatch(text) else "Enter a complete address, such as https://example.com/."
        case "date":
            return None if _is_date(text) else "Enter a date: year-month-day, such as 2026-07-28."
        case "date-time":
            return None if _is_date_time(text) else "Enter a date and a time, such as 2026-07-28 14:30."
    return None


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None


def _is_date_time(text: str) -> bool:
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?([+-]\d\d:\d\d)", text, re.ASCII)
    if found is None:
        return False
    try:
        datetime.fromisoformat(found[1] + found[2])
    except ValueError:
        return False
    return True
