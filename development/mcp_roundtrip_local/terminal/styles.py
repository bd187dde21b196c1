"""Colours of a terminal, and text that may be written to one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TextIO

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
            return printable("".join(parts))
        found = [*_COLOUR.findall(text), "\x1b[0m"]
        return "".join(printable(part) + code for part, code in zip(parts, found, strict=True))


def printable(text: str) -> str:
    """Return text without control characters: a client must not be able to control the terminal."""
    text = text.expandtabs(4).replace("\xa0", " ")
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def wants_colours(stream: TextIO, variables: Mapping[str, str]) -> bool:
    """Return whether to write colours: to a terminal, unless NO_COLOR is set; always with FORCE_COLOR.

    Sources: https://no-color.org, https://force-color.org.
    """
    if variables.get("NO_COLOR"):
        return False
    if variables.get("FORCE_COLOR"):
        return True
    return stream.isatty() and variables.get("TERM") != "dumb"
