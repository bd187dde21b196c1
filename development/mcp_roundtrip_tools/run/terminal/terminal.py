"""Writes requests, invocations and printed lines to a terminal as they happen."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.client.terminal_text import Styles, one_line
from mcp_roundtrip_tools.run.execution.log_text import LogText, readable
from mcp_roundtrip_tools.run.observation.records import Began, Ended, Event, Note, Printed, Root
from mcp_roundtrip_tools.run.terminal.plain_lines import audit_line
from mcp_roundtrip_tools.run.terminal.summary import Summary, summarize
from mcp_roundtrip_tools.template.model import short_name

HELD_MS: Final = 500.0
"""How long the lines of a function wait for the line of their request."""

_KIND: Final = 14
_COLUMNS: Final = 37
"""The width of the method and the name."""

_MARGIN: Final = 22
"""Where the text of a printed line begins."""

_LEVEL_STYLES: Final = {"WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}

_FUNCTION: Final = re.compile(r"\[([^\]\s]+)\] ")


@dataclass(frozen=True, slots=True)
class _Block:
    """What a function printed at once."""

    function: str
    lines: tuple[str, ...]


@dataclass(slots=True)
class _Running:
    """A root that has begun. Its lines are held until it ends, or until it is `announced`."""

    root: Root
    announced: bool = False
    held_since_ms: float = 0.0
    held: list[_Block] = field(default_factory=list)


class Terminal:
    """A listener of the recorder that writes lines of text.

    A function's lines are below the line of their request. When that takes long, `show_running`, called
    periodically, writes them earlier, below a first line that says so. `write` gets one or more lines.
    """

    def __init__(self, write: Callable[[str], None], styles: Styles) -> None:
        self._write = write
        self._styles = styles
        self._lock = threading.Lock()
        self._running: dict[str, _Running] = {}
        self._last_function = ""
        self._folder = f"{Path.cwd()}/"

    def __call__(self, event: Event) -> None:
        with self._lock:
            match event:
                case Began(root):
                    self._running[root.id] = _Running(root)
                case Ended(root):
                    running = self._running.pop(root.id, None)
                    self._end(root, running.held if running else ())
                case Printed():
                    self._print(event)
                case Note(at_ms, text):
                    self._put(self._note_lines(at_ms, text))

    def show_running(self, now_ms: float) -> None:
        """Write the lines that have waited too long for the end of their request."""
        with self._lock:
            for running in self._running.values():
                if running.held and now_ms - running.held_since_ms > HELD_MS:
                    self._announce(running)

    def _print(self, event: Printed) -> None:
        found = readable(event.line.text)
        if found is None:
            return
        block = _Block(short_name(event.function), tuple(self._level_lines(found)))
        running = self._running.get(event.root_id)
        if running is None or running.announced:
            self._put_blocks([block])
            return
        running.held_since_ms = running.held_since_ms or event.line.at_ms
        running.held.append(block)
        if event.line.at_ms - running.held_since_ms > HELD_MS:
            self._announce(running)

    def _announce(self, running: _Running) -> None:
        running.announced = True
        started = running.root.started_at_ms
        self._put([self._line(started, summarize(running.root), "running")])
        self._put_blocks(running.held)
        running.held.clear()

    def _put(self, lines: Iterable[str]) -> None:
        self._last_function = ""
        self._write("\n".join(lines))

    def _put_blocks(self, blocks: Iterable[_Block]) -> None:
        """Write printed lines. The function is named where another one begins to print."""
        lines = []
        for block in blocks:
            for line in block.lines:
                name = "" if block.function == self._last_function else one_line(block.function)
                self._last_function = block.function
                indent = " " * (_MARGIN - 2 - len(name))
                lines.append(f"{indent}{self._styles.paint('cyan', name)}  {line}")
        if lines:
            self._write("\n".join(lines))

    def _end(self, root: Root, held: Iterable[_Block]) -> None:
        """Write the line of a root, and what was printed, except for what the line says."""
        summary, duration_ms = summarize(root), root.duration_ms or 0.0
        self._put([self._line(root.started_at_ms + duration_ms, summary, _duration(duration_ms))])
        failure = summary.failure or ""
        self._put_blocks(block for block in held if "\n".join(block.lines) not in failure)

    def _line(self, at_ms: float, summary: Summary, last: str) -> str:
        paint = self._styles.paint
        calls = [f"{number} {service}" for service, number in summary.calls.items()]
        usage = " · ".join([*summary.environments, *calls, last])
        kind, subject = f"{one_line(summary.kind):{_KIND}}", one_line(summary.subject)
        padding, details = " " * (_COLUMNS - len(kind) - len(subject)), map(one_line, summary.details)
        if summary.is_minor and not summary.failure:
            return paint("dim", f"{_clock(at_ms)}  {kind} {subject}{padding} {' · '.join([*details, usage])}")
        failure = [paint("red", one_line(summary.failure))] if summary.failure else []
        words = " · ".join([*failure, *details, paint("dim", usage)])
        return f"{paint('dim', _clock(at_ms))}  {kind} {paint('bold', subject)}{padding} {words}"

    def _level_lines(self, found: LogText) -> Iterator[str]:
        style = _LEVEL_STYLES.get(found.level)
        first, *more = found.text.split("\n")
        level = f"{found.level} " if found.level else ""
        clean = self._styles.clean
        yield self._styles.paint(style, level + clean(first)) if style else level + clean(first)
        yield from map(clean, more)

    def _note_lines(self, at_ms: float, text: str) -> Iterator[str]:
        text = audit_line(text) or _FUNCTION.sub(lambda found: f"{short_name(found[1])}: ", text, count=1)
        first, *more = text.replace(self._folder, "").split("\n")
        yield f"{self._styles.paint('dim', _clock(at_ms))}  {self._styles.clean(first)}"
        yield from (" " * 10 + self._styles.clean(line) for line in more)


def _clock(at_ms: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))


def _duration(duration_ms: float) -> str:
    return f"{duration_ms / 1000:.1f} s" if duration_ms >= 1000 else f"{duration_ms:.0f} ms"
