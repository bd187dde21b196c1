"""The golden corpus: read the recorded cases, compare them with what happens now, describe differences.

A placeholder equals any other of its kind, as long as the two stand for each other in the whole case.
"""

import json
import lzma
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("golden.jsonl.xz")

ORDERED: Final = frozenset({"inputRequests", "properties", "requests", "capabilities"})
"""Objects whose members people see in their order."""

MAX_SHOWN: Final = 300
_PLACEHOLDER: Final = re.compile(r"<([a-z]+) \d+>")
_NOTHING: Final = object()

Record = dict[str, Any]


@cache
def load(path: Path = FILE) -> dict[str, Record]:
    """Return the recorded cases by name."""
    with lzma.open(path, "rt", encoding="utf-8", errors="surrogatepass") as lines:
        return {record["case"]: record for record in map(json.loads, lines)}


@dataclass(frozen=True)
class Difference:
    """A member that differs: in which case, in which of its parts, and where in there."""

    case: str
    part: str
    path: tuple[str, ...]
    before: Any
    after: Any

    @property
    def cause(self) -> tuple[str, str, str]:
        """What this difference has in common with others that one change has caused."""
        before, after = (_PLACEHOLDER.sub(r"<\1>", _text(value)) for value in (self.before, self.after))
        return ".".join(self.path), before, after


class Comparison:
    """Compares one case with its record."""

    def __init__(self, before: Record, after: Record) -> None:
        self._case = before["case"]
        self._pairs: dict[tuple[str, str], str] = {}
        self.differences: list[Difference] = []
        if json.dumps(before) == json.dumps(after):
            return
        self.differences += self._exchanges(before["exchanges"], after["exchanges"])
        for name, part in (("rows", "the table at the end"), ("inside", "the content of tokens")):
            self.differences += self._compare(part, (), before.get(name, []), after.get(name, []))

    def _exchanges(self, before: list[Any], after: list[Any]) -> Iterator[Difference]:
        for number, (old, new) in enumerate(zip(before, after, strict=False), 1):
            yield from self._compare(f"request {number} ({_title(old)})", (), old, new)
        for number, more in enumerate(before[len(after) :], len(after) + 1):
            yield Difference(self._case, f"request {number}", ("request",), _title(more), _NOTHING)
        for number, more in enumerate(after[len(before) :], len(before) + 1):
            yield Difference(self._case, f"request {number}", ("request",), _NOTHING, _title(more))

    def _compare(self, part: str, path: tuple[str, ...], before: Any, after: Any) -> Iterator[Difference]:
        if isinstance(before, dict) and isinstance(after, dict):
            for name in {**before, **after}:
                members = before.get(name, _NOTHING), after.get(name, _NOTHING)
                yield from self._compare(part, (*path, name), *members)
            if path and path[-1] in ORDERED and [*before] != [*after] and before.keys() == after.keys():
                yield Difference(self._case, part, (*path, "the order"), [*before], [*after])
        elif isinstance(before, list) and isinstance(after, list):
            yield from self._compare_items(part, path, before, after)
        elif not self._is_same(before, after):
            yield Difference(self._case, part, path, before, after)

    def _compare_items(
        self, part: str, path: tuple[str, ...], before: list[Any], after: list[Any]
    ) -> Iterator[Difference]:
        old, new = [_label(each) for each in before], [_label(each) for each in after]
        for tag, first, end, other, other_end in SequenceMatcher(
            None, old, new, autojunk=False
        ).get_opcodes():
            both = min(end - first, other_end - other) if tag in ("equal", "replace") else 0
            for one, another in zip(range(first, first + both), range(other, other + both), strict=True):
                yield from self._compare(part, (*path, old[one]), before[one], after[another])
            for one in range(first + both, end):
                yield Difference(self._case, part, (*path, old[one]), before[one], _NOTHING)
            for another in range(other + both, other_end):
                yield Difference(self._case, part, (*path, new[another]), _NOTHING, after[another])

    def _is_same(self, before: Any, after: Any) -> bool:
        if not isinstance(before, str) or not isinstance(after, str):
            return repr(before) == repr(after)  # not ==: NaN, and 1 for true
        if _PLACEHOLDER.sub(r"<\1>", before) != _PLACEHOLDER.sub(r"<\1>", after):
            return False
        pairs = zip(_PLACEHOLDER.finditer(before), _PLACEHOLDER.finditer(after), strict=True)
        return all(self._are_paired(one[0], other[0]) for one, other in pairs)

    def _are_paired(self, before: str, after: str) -> bool:
        pairs = {("before", before): after, ("after", after): before}
        return all(self._pairs.setdefault(one, other) == other for one, other in pairs.items())


def _label(item: Any) -> str:
    """Return what tells an item of a list from others."""
    if not isinstance(item, dict):
        return "[]"
    if "sk" in item:
        return "row " + _PLACEHOLDER.sub(r"<\1>", str(item["sk"].get("S")))
    keys = ("aws", "issuer", "message", "name", "uri", "token", "type")
    return next((_PLACEHOLDER.sub(r"<\1>", item[key]) for key in keys if type(item.get(key)) is str), "[]")


def _title(exchange: Mapping[str, Any]) -> str:
    request = exchange["request"]
    body = request.get("body", request.get("direct"))
    method = body.get("method") if isinstance(body, dict) else None
    return str(method or request.get("http") or "worker")


def _text(value: Any) -> str:
    return "nothing" if value is _NOTHING else json.dumps(value, ensure_ascii=False)


def _excerpt(text: str, at: int) -> str:
    begin = max(at - 60, 0) if len(text) > MAX_SHOWN else 0
    return f"{'…' * bool(begin)}{text[begin : begin + MAX_SHOWN]}{'…' * (len(text) > begin + MAX_SHOWN)}"


def describe(differences: Iterable[Difference], most: int = 20) -> str:
    """Describe differences for a person: those with one cause together, the most frequent cause first."""
    causes: dict[tuple[str, str, str], list[Difference]] = {}
    for each in differences:
        causes.setdefault(each.cause, []).append(each)
    paragraphs = []
    for (path, _, _), found in sorted(causes.items(), key=lambda cause: -len(cause[1])):
        one, cases = found[0], {each.case for each in found}
        times = f"{len(cases)} case{'s' * (len(cases) > 1)}"
        where = f"{path}\n    in {times}, for example in {one.part} of\n    {one.case!r}"
        old, new = _text(one.before), _text(one.after)
        at = next((at for at, pair in enumerate(zip(old, new, strict=False)) if len({*pair}) == 2), 0)
        paragraphs.append(f"{where}\n    before: {_excerpt(old, at)}\n    after:  {_excerpt(new, at)}")
    more = [f"and {len(paragraphs) - most} more differences"] if len(paragraphs) > most else []
    return "\n".join(paragraphs[:most] + more)
