"""Record the golden corpus again, and print what changed: `make corpus`."""

import lzma
import sys
from collections.abc import Sequence
from pathlib import Path

from corpus.golden import FILE, compare, describe, load
from corpus.recording import all_cases, record


def main(names: Sequence[str]) -> None:
    """Record the cases whose names contain one of `names`, or all; keep the record of the others."""
    before = load() if FILE.exists() else {}
    chosen = [case for case in all_cases() if not names or any(name in case.name for name in names)]
    records = dict(before) if names else {}
    records |= {case.name: record(case) for case in chosen}
    save(records)
    report(before, records)


def save(records: dict[str, str], path: Path = FILE) -> None:
    """Write cases, in the order of their names, so that the same cases are the same bytes."""
    text = "".join(f"{records[name]}\n" for name in sorted(records))
    path.write_bytes(lzma.compress(text.encode("utf-8", "surrogatepass"), preset=9))


def report(before: dict[str, str], after: dict[str, str]) -> None:
    """Print the differences, for the commit message and its reader."""
    compared = {name: compare(before[name], after[name]) for name in after if name in before}
    print(f"{len(after)} cases, {len(after) - len(compared)} new, {len(before) - len(compared)} gone")
    if described := describe(compared):
        print(described)


if __name__ == "__main__":
    main(sys.argv[1:])
