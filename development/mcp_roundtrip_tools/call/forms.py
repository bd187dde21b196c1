"""Ask for the fields of a form on the terminal, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from mcp_roundtrip_tools.call.fields import UNSET, Field
from mcp_roundtrip_tools.call.terminal import Terminal

DECLINE: Final = ("/d", "/decline")
CANCEL: Final = ("/c", "/cancel")

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
    if line.strip() in DECLINE:
        raise Refused("decline")
    if line.strip() in CANCEL:
        raise Refused("cancel")
    return line


def ask_fields(terminal: Terminal, fields: Iterable[Field], *, is_single: bool = False) -> dict[str, Any]:
    """Return the values of the fields that the user enters. Raises Refused."""
    values = {field.name: _ask(terminal, field, is_single=is_single) for field in fields}
    return {name: value for name, value in values.items() if value is not UNSET}


def _ask(terminal: Terminal, field: Field, *, is_single: bool) -> Any:
    _describe(terminal, field, is_single=is_single)
    name = "" if is_single else f"{field.label} "
    hint = field.hint()
    while True:
        line = ask_line(terminal, f"  {name}{hint}{' ' if hint else ''}> ")
        try:
            return field.read(line)
        except ValueError as error:
            terminal.show(f"  {field.label if name else 'The answer'} {error}.", "red")


def _describe(terminal: Terminal, field: Field, *, is_single: bool) -> None:
    description = field.schema.get("description")
    if isinstance(description, str) and not is_single:
        terminal.show(f"  {field.label}: {description}", "dim")
    width = len(str(len(field.options)))
    for number, (_, title) in enumerate(field.options, 1):
        terminal.show(f"    {number:>{width}}  {title}")
