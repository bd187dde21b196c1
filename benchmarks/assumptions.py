"""Dataclasses of assumed quantities, whose fields are options of a script."""

from argparse import ArgumentParser
from dataclasses import field, fields
from typing import Any


def assumption(value: float, meaning: str) -> Any:
    """Return a dataclass field with a default and the meaning that the help and the table print."""
    return field(default=value, metadata={"meaning": meaning})


def add_options(parser: ArgumentParser, assumptions: type[Any]) -> None:
    """Add an option for each field of a dataclass of assumptions."""
    for each in fields(assumptions):
        meaning, default = each.metadata["meaning"], each.default
        parser.add_argument(option(each.name), type=type(default), default=default, help=meaning)


def option(name: str) -> str:
    """Return the option that sets a field."""
    return f"--{name.replace('_', '-')}"
