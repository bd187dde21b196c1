"""The terminal of the command: what it shows, and what it asks."""

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any, Final, TextIO

from mcp_roundtrip_tools.call.fields import UNSET, Field, fields_of
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

    def show_indented(self, text: str) -> None:
        """Show a text with each line indented."""
        self.show(textwrap.indent(text, "  "))

    def ask(self, prompt: str) -> str:
        """Return the line that the user enters. Raises EOFError at the end of the input (Ctrl+D)."""
        print(self._styles.paint("cyan", printable(prompt)), end="", file=self._shown, flush=True)
        line = self._entered.readline()
        if not line:
            print(file=self._shown, flush=True)
            raise EOFError
        return line.rstrip("\r\n")


REFUSALS: Final = {"/d": "decline", "/c": "cancel"}

HELP: Final = "/d declines the question, /c cancels it."


class Refused(Exception):
    """The user does not answer. `action` is "decline" or "cancel"."""

    def __init__(self, action: str) -> None:
        super().__init__(action)
        self.action = action


def ask_line(terminal: Terminal, prompt: str) -> str:
    """Return a line that the user enters. Raises Refused; the end of the input cancels."""
    try:
        line = terminal.ask(prompt)
    except EOFError:
        raise Refused("cancel") from None
    if action := REFUSALS.get(line.strip()):
        raise Refused(action)
    return line


def ask_fields(terminal: Terminal, fields: Iterable[Field], *, is_single: bool = False) -> dict[str, Any]:
    """Return the values of the fields that the user enters. Raises Refused."""
    values = {field.name: _ask(terminal, field, is_single=is_single) for field in fields}
    return {name: value for name, value in values.items() if value is not UNSET}


def _ask(terminal: Terminal, field: Field, *, is_single: bool) -> Any:
    _show_field(terminal, field, is_single=is_single)
    name = "" if is_single else f"{field.label} "
    hint = field.hint()
    while True:
        line = ask_line(terminal, f"  {name}{hint}{' ' if hint else ''}> ")
        try:
            return field.read(line)
        except ValueError as error:
            terminal.show(f"  {field.label if name else 'The answer'} {error}.", "red")


def _show_field(terminal: Terminal, field: Field, *, is_single: bool) -> None:
    description = field.schema.get("description")
    if isinstance(description, str) and not is_single:
        terminal.show(f"  {field.label}: {description}", "dim")
    width = len(str(len(field.options)))
    for number, (_, title) in enumerate(field.options, 1):
        terminal.show(f"    {number:>{width}}  {title}")


WIDTH: Final = 100


def describe_tools(tools: Iterable[Mapping[str, Any]]) -> str:
    """Return the tools with their arguments and the first line of their descriptions."""
    return "\n".join(_describe(tool) for tool in tools)


def _describe(tool: Mapping[str, Any]) -> str:
    arguments = " ".join(map(_argument, fields_of(tool.get("inputSchema") or {})))
    summary = str(tool.get("description") or "").strip().partition("\n")[0]
    text = textwrap.fill(summary, WIDTH, initial_indent="    ", subsequent_indent="    ")
    return f"{tool['name']} {arguments}".rstrip() + (f"\n{text}" if summary else "")


def _argument(field: Field) -> str:
    shown = f"{field.name}={field.summary}"
    return shown if field.is_required else f"[{shown}]"


def describe_result(result: Mapping[str, Any]) -> str:
    """Return a result as text: its structured content, otherwise its blocks."""
    if result.get("structuredContent") is not None and not result.get("isError"):
        return json.dumps(result["structuredContent"], indent=2, ensure_ascii=False)
    return "\n".join(_block(block) for block in result.get("content") or ())


def _block(block: Mapping[str, Any]) -> str:
    """Return a block as text, without its data."""
    match block:
        case {"type": "text"}:
            return block.get("text") or ""
        case {"type": "resource", "resource": resource}:
            return resource.get("text") or f"[resource {resource.get('uri')}]"
        case {"type": "resource_link", "uri": str(uri)}:
            return f"{block.get('name', '')} {uri}".strip()
    return json.dumps({name: each for name, each in block.items() if name != "data"}, ensure_ascii=False)
