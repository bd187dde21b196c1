"""Markdown tables, and documents that contain them between two comments."""

from collections.abc import Iterable, Sequence
from pathlib import Path

Comments = tuple[str, str]
"""The lines of a document between which tables are."""


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] | None = None
) -> str:
    """Return a Markdown table. Columns in `right` are right-aligned; by default all except the first."""
    flush = range(1, len(header)) if right is None else right
    rule = ["---:" if column in flush else "---" for column in range(len(header))]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (header, rule, *rows))


def write_tables(tables: str, into: Path | None, comments: Comments) -> None:
    """Replace the tables of a document, or print them. Raise ValueError as `insert_tables` does."""
    if into is None:
        print(tables, end="")
    else:
        into.write_text(insert_tables(into.read_text("utf-8"), tables, comments), "utf-8")


def insert_tables(document: str, tables: str, comments: Comments) -> str:
    """Replace the text between two lines of a document. Raise ValueError if the document lacks them."""
    before, begin, rest = document.partition(comments[0])
    _, end, after = rest.partition(comments[1])
    if not (begin and end):
        raise ValueError(f"the file does not have the lines {' and '.join(map(str.strip, comments))}")
    return f"{before}{begin}\n{tables}\n{end}{after}"
