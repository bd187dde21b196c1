"""Text on the terminal: what the user reads on standard error, and what the user enters."""

from __future__ import annotations

import os
import sys
import textwrap
from typing import TextIO

from mcp_roundtrip_tools.client.terminal_text import Styles, printable, wants_colours


class Terminal:
    """Shows lines, and reads the lines that the user enters. `is_interactive`: a user can answer."""

    def __init__(
        self,
        entered: TextIO | None = None,
        shown: TextIO | None = None,
        *,
        is_interactive: bool | None = None,
    ) -> None:
        self._entered = sys.stdin if entered is None else entered
        self._shown = sys.stderr if shown is None else shown
        self._styles = Styles(wants_colours(self._shown, os.environ))
        both = self._entered.isatty() and self._shown.isatty()
        self.is_interactive = both if is_interactive is None else is_interactive

    def show(self, text: str = "", style: str = "") -> None:
        """Show a text in a style of Styles, without the control characters of a server."""
        clean = printable(text, kept="\n\t")
        print(self._styles.paint(style, clean) if style else clean, file=self._shown, flush=True)

    def show_indented(self, text: str, style: str = "") -> None:
        """Show a text with each line indented."""
        self.show(textwrap.indent(text, "  "), style)

    def ask(self, prompt: str) -> str:
        """Return the line that the user enters. Raises EOFError at the end of the input (Ctrl+D)."""
        print(self._styles.paint("cyan", printable(prompt)), end="", file=self._shown, flush=True)
        line = self._entered.readline()
        if not line:
            print(file=self._shown, flush=True)
            raise EOFError
        return line.rstrip("\r\n")
