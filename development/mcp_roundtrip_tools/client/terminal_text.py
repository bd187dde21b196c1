"""Text for a terminal: colours, and no control characters of clients, servers and functions."""

import json
import re
import sys
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TextIO

_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

_COLOUR: Final = re.compile("\x1b\\[[0-9;:]*m")


@dataclass(frozen=True, slots=True)
class Styles:
    """Colours text, or leaves it unchanged if not `colours`."""

    colours: bool = False

    def paint(self, style: str, text: str) -> str:
        """Return text in a style: bold, dim, red, green, yellow or cyan."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.colours and text else text

    def clean(self, text: str) -> str:
        """Return the output of a program without control characters other than colours."""
        parts = _COLOUR.split(text)
        if not self.colours or len(parts) == 1:
            return one_line("".join(parts))
        found = [*_COLOUR.findall(text), "\x1b[0m"]
        return "".join(one_line(part) + code for part, code in zip(parts, found, strict=True))


def printable(text: str, kept: str = "") -> str:
    """Return text without control characters except `kept`: others must not control the terminal."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in kept else _replaced(each) for each in text)


def one_line(text: str) -> str:
    """Return printable text with tabs as spaces, so that columns are aligned."""
    return printable(text.expandtabs(4))


def printable_json(value: Any) -> str:
    """Return JSON on one line, in which control characters are escapes, and all that a locale may lack."""
    is_unicode = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not is_unicode)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def _replaced(character: str) -> str:
    return " " if unicodedata.category(character) == "Zs" else "\N{REPLACEMENT CHARACTER}"


def wants_colours(stream: TextIO, variables: Mapping[str, str]) -> bool:
    """Return whether to write colours: to a terminal; see https://no-color.org, https://force-color.org."""
    if variables.get("NO_COLOR"):
        return False
    if variables.get("FORCE_COLOR"):
        return True
    return stream.isatty() and variables.get("TERM") != "dumb"
