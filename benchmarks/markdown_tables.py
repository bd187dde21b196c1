"""Markdown tables, documents that contain them between two comments, and the assumptions behind them.

Assumptions are the fields of a dataclass. Each is an option of a command.
"""

import tomllib
from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any, TypeVar

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


# -- assumptions ----------------------------------------------------------------------------------------

_Assumptions = TypeVar("_Assumptions")
_Entry = TypeVar("_Entry")


def assumption(value: float, meaning: str) -> Any:
    """Return a dataclass field with a default and the meaning that the help prints."""
    return field(default=value, metadata={"meaning": meaning})


def parse_command(
    parser: ArgumentParser, kind: type[_Assumptions], arguments: Sequence[str] | None
) -> tuple[_Assumptions, dict[str, Any]]:
    """Parse the options of a parser, one for each assumption, and `--into`; return them apart."""
    parser.add_argument("--into", type=Path, help="a Markdown file to update")
    for each in fields(kind):  # type: ignore[arg-type]  # a dataclass
        option, default = f"--{each.name.replace('_', '-')}", each.default
        meaning = f"{each.metadata['meaning']} (default: {default:,})"
        parser.add_argument(option, type=type(default), default=default, help=meaning)
    options = vars(parser.parse_args(arguments))
    given = {each.name: options.pop(each.name) for each in fields(kind)}  # type: ignore[arg-type]
    return kind(**given), options


def read_dated(path: Path, entry: type[_Entry]) -> tuple[str, str, Mapping[str, _Entry]]:
    """Read the figures of one Region from a TOML file: the Region, the date, and the entries by name."""
    content = tomllib.loads(path.read_text("utf-8"))
    region, read_on = content.pop("region"), content.pop("read_on").isoformat()
    return region, read_on, {name: entry(**members) for name, members in content.items()}
