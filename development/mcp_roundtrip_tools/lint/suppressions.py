"""Comments that suppress a finding: ``# noqa: MRT001 the id is only logged``.

The comment stands on the line of the finding, or on the first or last line of its statement. A reason is
required. A suppression of nothing is a finding itself, so that none stays behind.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

_NOQA = re.compile(r"#\s*noqa:\s*(?P<codes>[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*)(?P<reason>[^#]*)")
_OURS = re.compile(r"MRT\d+")


@dataclass(frozen=True, slots=True)
class Suppression:
    """A comment in a line. `column` counts from 0."""

    line: int
    column: int
    rules: frozenset[str]
    reason: str


def suppressions(text: str) -> Iterator[Suppression]:
    """The comments of a module that name rules of this package."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type != tokenize.COMMENT:
            continue
        found = _NOQA.search(token.string)
        rules = frozenset(_OURS.findall(found["codes"])) if found else frozenset()
        if found and rules:
            yield Suppression(token.start[0], token.start[1], rules, found["reason"].strip(" -:()"))
