"""The golden corpus: read the recorded cases, compare them with what happens now, describe differences.

A record is compared line by line: a line for each value, with the names of the members that lead to it. A
placeholder equals any other of its kind, as long as the two stand for each other in the whole case.
"""

import json
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).with_name("golden.jsonl.xz")

ORDERED: Final = frozenset({"inputRequests", "properties", "requests", "capabilities"})
"""Objects whose members people see in their order."""

MAX_SHOWN: Final = 300
_PLACEHOLDER: Final = re.compile(r"<([a-z]+) \d+>")

Record = dict[str, Any]
Difference = tuple[tuple[str, ...], tuple[str, ...]]
"""Lines of a record, and those in their place now."""


@cache
def load(path: Path = FILE) -> dict[str, str]:
    """Return the recorded cases as JSON, by name. As objects, they would slow down the garbage collection."""
    with lzma.open(path, "rt", encoding="utf-8", errors="surrogatepass") as lines:
        return {_name(line): line.rstrip("\n") for line in lines}


def _name(line: str) -> str:
    name, _ = json.JSONDecoder().raw_decode(line, len('{"case":'))
    return str(name)


def encode(record: Record) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def compare(before: str, after: str) -> list[Difference]:
    """Return the differences of a case from its record."""
    if before == after:
        return []
    numbered = [_renumbered(_lines(json.loads(record))) for record in (before, after)]
    plain = [[_PLACEHOLDER.sub(r"<\1>", line) for line in lines] for lines in numbered]
    return _differences(*plain) or _differences(*numbered)


def _lines(value: Any, *path: str) -> Iterator[str]:
    where = " > ".join(path)
    if isinstance(value, dict) and value:
        for name in value if path and path[-1] in ORDERED else sorted(value):
            yield from _lines(value[name], *path, name)
    elif isinstance(value, list) and value:
        for item in value:
            yield f"{where} > {_label(item)}:"
            yield from _lines(item, *path, _label(item))
    else:
        yield f"{where}: {json.dumps(value, ensure_ascii=False)}"


def _label(item: Any) -> str:
    """Return what tells an item of a list from others."""
    if not isinstance(item, dict):
        return "[]"
    if "sk" in item:
        return f"row {item['sk'].get('S')}"
    if "request" in item:
        return _title(item["request"])
    keys = ("aws", "issuer", "message", "name", "uri", "token", "type")
    return next((item[key] for key in keys if type(item.get(key)) is str), "[]")


def _title(request: Mapping[str, Any]) -> str:
    body = request.get("body", request.get("direct"))
    method = body.get("method") if isinstance(body, dict) else None
    return str(method or request.get("http") or "worker")


def _renumbered(lines: Iterator[str]) -> list[str]:
    """Number the placeholders by their first appearance in these lines."""
    names: dict[str, str] = {}

    def renumber(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"<{found[1]} {len(names) + 1}>")

    return [_PLACEHOLDER.sub(renumber, line) for line in lines]


def _differences(old: Sequence[str], new: Sequence[str]) -> list[Difference]:
    matched = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return [
        (tuple(old[begin:end]), tuple(new[other:other_end]))
        for kind, begin, end, other, other_end in matched
        if kind != "equal"
    ]


def describe(found: Mapping[str, Sequence[Difference]], most: int = 20) -> str:
    """Describe the differences of cases for a person: each once, the most frequent first.

    Of those that are equally frequent, what clients see comes first: the other ones follow from it.
    """
    cases: dict[Difference, list[str]] = {}
    for name, differences in found.items():
        for each in dict.fromkeys(differences):
            cases.setdefault(each, []).append(name)
    paragraphs = sorted(
        (-len(names), "> response" not in (old or new)[0], _paragraph(old, new, names))
        for (old, new), names in cases.items()
    )
    texts = [text for _, _, text in paragraphs[:most]]
    more = [f"and {len(paragraphs) - most} more differences"] if len(paragraphs) > most else []
    return "\n".join(texts + more)


def _paragraph(old: Sequence[str], new: Sequence[str], names: Sequence[str]) -> str:
    """Name a case that has a difference, and show its lines, long ones from where they differ."""
    pairs = zip(*(lines[0] if lines else "" for lines in (old, new)), strict=False)
    at = next((number for number, pair in enumerate(pairs) if len({*pair}) == 2), 0)
    shown = [f"    {sign} {_excerpt(line, at)}" for sign, lines in (("-", old), ("+", new)) for line in lines]
    return "\n".join([f"in {len(names)} case{'s' * (len(names) > 1)}, for example {names[0]!r}", *shown])


def _excerpt(line: str, at: int) -> str:
    begin = max(at - 60, 0) if len(line) > MAX_SHOWN else 0
    return f"{'…' * bool(begin)}{line[begin : begin + MAX_SHOWN]}{'…' * (len(line) > begin + MAX_SHOWN)}"
