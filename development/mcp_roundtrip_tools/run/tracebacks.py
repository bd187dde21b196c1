"""Tracebacks for the author of an application: frames of the application, then the message."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

MAX_TEXT: Final = 4_000
"""The characters of a traceback that are kept; the message is at its end."""

_FRAME: Final = re.compile(r'\s*File "(?P<path>[^"]+)", line \d+, in ')
_LAYER_MODULE: Final = re.compile(r"^mcp_roundtrip\.[a-z_.]+\.(?=\w+: )")
"""Before the name of an exception."""

_HEADERS: Final = ("Traceback (most recent call last):", "  [Previous line repeated")
_ANY_FRAME: Final = re.compile(r'^ +File "', re.MULTILINE)
_INSTALLED: Final = frozenset({"site-packages", "dist-packages", "mcp_roundtrip"})


def author_traceback(text: str, folder: Path, code: Path) -> str:
    """Return a traceback without the frames of Python, of installed packages and of the layer.

    `folder` is that of the template, and `code` that of the function. Paths below them are relative.
    """
    kept = _kept_lines(text, lambda path: _is_author_s(path, folder, code))
    lines = "\n".join(_LAYER_MODULE.sub("", line) for line in kept)
    for root in (folder, code):
        lines = lines.replace(f'File "{root}/', 'File "')
    return lines if len(lines) <= MAX_TEXT else f"…{lines[-MAX_TEXT:]}"


def without_layer(text: str) -> str:
    """Return a traceback that a function logged without the frames of the layer and of packages."""
    lines = _kept_lines(text, lambda path: not _INSTALLED.intersection(path.parts))
    return "\n".join(_LAYER_MODULE.sub("", line) for line in lines)


def message_of(text: str) -> str:
    """Return a traceback without its frames; another text as it is."""
    lines = [line for line in text.splitlines() if not line.startswith("  ")]
    return "\n".join(lines) if lines and _ANY_FRAME.search(text) else text


def _kept_lines(text: str, is_shown: Callable[[Path], bool]) -> Iterator[str]:
    """Yield the lines of a traceback without headers and without the frames of files that are not shown."""
    is_hidden = False
    for line in text.splitlines():
        if found := _FRAME.match(line):
            is_hidden = not is_shown(Path(found["path"]))
        elif not line.startswith("    "):  # not the source of a frame
            is_hidden = False
        if not is_hidden and line.strip() and not line.startswith(_HEADERS):
            yield line


def _is_author_s(path: Path, folder: Path, code: Path) -> bool:
    root = next((each for each in (code, folder) if path.is_relative_to(each)), None)
    if root is None:
        return False
    parts = path.relative_to(root).parts
    return not _INSTALLED.intersection(parts) and not any(part.startswith(".") for part in parts)
