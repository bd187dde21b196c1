"""Parser for docstrings of Google (`Args:`), NumPy (`Parameters`, underlined) and reST (`:param name:`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from inspect import cleandoc
from itertools import takewhile

_GOOGLE_HEADERS = (
    *("Args:", "Arguments:", "Parameters:", "Params:"),
    *("Keyword Args:", "Keyword Arguments:", "Other Parameters:"),
)
_NUMPY_HEADERS = ("Parameters", "Other Parameters")

# Not compiled here, because few docstrings have more than prose.
_GOOGLE_ENTRY = r"(?P<names>\w+)\s*(?:\(.*?\))?\s*:(?:\s+(?P<text>.*))?$"
_NUMPY_ENTRY = r"(?P<names>\w+(?:\s*,\s*\w+)*)\s*(?::(?P<type>.*))?$"
_REST_ENTRY = r":(?:param|parameter|arg|argument)\s+(?:[^:]*\s)?(?P<names>\w+)\s*:\s*(?P<text>.*)$"
_REST_TYPE = r":type\s+\w+\s*:"


def parse_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the prose of a `__doc__`, with unreadable sections, and the parameters' descriptions by name."""
    lines = cleandoc(text).splitlines()
    parameters: dict[str, str] = {}
    for style in (_google, _numpy, _rest):
        while True:  # a docstring may have several sections
            lines, found = style(lines)
            if not found:
                break
            parameters = found | parameters
    prose = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return prose, {name: words for name, words in parameters.items() if words}


def with_descriptions(prose: str, descriptions: Mapping[str, str]) -> str:
    """Return prose, followed by a section with descriptions of parameters if there are any."""
    lines = [f"    {name}: {text}" for name, text in descriptions.items()]
    return "\n".join([prose, "", "Args:", *lines]).strip() if lines else prose


def _google(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    for start, line in enumerate(lines):
        if line.rstrip() in _GOOGLE_HEADERS:
            block = list(takewhile(lambda line: not line.strip() or line[0].isspace(), lines[start + 1 :]))
            if found := _entries(block, _GOOGLE_ENTRY):
                return [*lines[:start], "", *lines[start + 1 + len(block) :]], found
    return lines, {}


def _numpy(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    headers = [n for n, line in enumerate(lines) if _is_underline(line)]
    for position, underline in enumerate(headers):
        if lines[underline - 1].strip() in _NUMPY_HEADERS:
            following = headers[position + 1 :]
            stop = following[0] - 1 if following else len(lines)
            if found := _entries(lines[underline + 1 : stop], _NUMPY_ENTRY):
                return [*lines[: underline - 1], "", *lines[stop:]], found
    return lines, {}


def _is_underline(line: str) -> bool:
    return line.startswith("---") and not line.rstrip().strip("-")


def _rest(lines: list[str]) -> tuple[list[str], dict[str, str]]:
    if not any(line.startswith(":") for line in lines):
        return lines, {}
    prose: list[str] = []
    entries: list[str] = []
    target = prose
    for line in lines:
        if re.match(_REST_ENTRY, line):
            target = entries
        elif re.match(_REST_TYPE, line):
            target = []
        elif not line[:1].isspace():  # only indented lines continue a field
            target = prose
        target.append(line)
    return prose, _entries(entries, _REST_ENTRY)


def _entries(block: Iterable[str], pattern: str) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    names: list[str] = []
    for line in cleandoc("\n" + "\n".join(block)).splitlines():
        entry = re.match(pattern, line)
        if entry:
            names = re.split(r"\s*,\s*", entry["names"])
            first = entry.groupdict().get("text") or ""
            found.update({name: [first] for name in names})
        else:
            for name in names:
                found[name].append(line.strip())
    return {name: " ".join(filter(None, words)) for name, words in found.items()}
