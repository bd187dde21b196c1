"""Record the golden corpus again, and print what changed: `make corpus`."""

import json
import lzma
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from corpus.golden import FILE, Record, compare, describe, load
from corpus.recording import all_cases, record


def main(names: Sequence[str]) -> None:
    """Record the cases whose names contain one of `names`, or all; keep the record of the others."""
    before = load() if FILE.exists() else {}
    chosen = [case for case in all_cases() if not names or any(name in case.name for name in names)]
    records: dict[str, Record] = dict(before) if names else {}
    records |= {case.name: record(case) for case in chosen}
    save(records.values())
    report(before, records)


def save(records: Iterable[Record], path: Path = FILE) -> None:
    """Write cases, in the order of their names, so that the same cases are the same bytes."""
    ordered = sorted(records, key=lambda record: str(record["case"]))
    text = "".join(f"{json.dumps(record, ensure_ascii=False, separators=(',', ':'))}\n" for record in ordered)
    path.write_bytes(lzma.compress(text.encode("utf-8", "surrogatepass"), preset=9))


def report(before: dict[str, Record], after: dict[str, Record]) -> None:
    """Print the differences, for the commit message and its reader."""
    compared = {name: compare(before[name], after[name]) for name in after if name in before}
    print(f"{len(after)} cases, {len(after) - len(compared)} new, {len(before) - len(compared)} gone")
    if described := describe(compared):
        print(described)


if __name__ == "__main__":
    main(sys.argv[1:])
