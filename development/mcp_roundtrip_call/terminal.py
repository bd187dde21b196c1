"""Text on the terminal: what the user reads on standard error, and what the user enters."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Mapping
from typing import Any, Final, TextIO

STYLES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "accent": "36"}


def printable(text: str) -> str:
    """Return a text of a server without control characters, which could rewrite the terminal."""
    kept = (each if each.isprintable() or each in "\n\t" else "\N{REPLACEMENT CHARACTER}" for each in text)
    return "".join(kept)


def printable_json(value: Any) -> str:
    """Return JSON on one line, in which such characters are escapes."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


def uses_colours(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether to write colours (no-color.org, force-color.org)."""
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or stream.isatty()


class Terminal:
    """Shows lines, and reads the lines that the user enters. `is_interactive`: somebody can answer."""

    def __init__(
        self,
        entered: TextIO | None = None,
        shown: TextIO | None = None,
        *,
        is_interactive: bool | None = None,
    ) -> None:
        self._entered = sys.stdin if entered is None else entered
        self._shown = sys.stderr if shown is None else shown
        self._has_colours = uses_colours(self._shown)
        both = self._entered.isatty() and self._shown.isatty()
        self.is_interactive = both if is_interactive is None else is_interactive

    def style(self, text: str, *styles: str) -> str:
        """Return a text in these STYLES, if the terminal has colours."""
        if not self._has_colours or not text or not styles:
            return text
        return f"\x1b[{';'.join(STYLES[style] for style in styles)}m{text}\x1b[0m"

    def show(self, text: str = "", *styles: str) -> None:
        """Show a text of this program or of a server, without the server's control characters."""
        print(self.style(printable(text), *styles), file=self._shown, flush=True)

    def show_indented(self, text: str, *styles: str) -> None:
        """Show a text with each line indented."""
        self.show(textwrap.indent(text, "  "), *styles)

    def ask(self, prompt: str) -> str:
        """Return the line that the user enters. Raises EOFError at the end of the input (Ctrl+D)."""
        print(self.style(printable(prompt), "accent"), end="", file=self._shown, flush=True)
        line = self._entered.readline()
        if not line:
            print(file=self._shown, flush=True)
            raise EOFError
        return line.rstrip("\r\n")
