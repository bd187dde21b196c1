"""The options of commands that run the functions of a template."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.template.model import TemplateError

DEFAULT_PORT: Final = 3000
"""The port of `make run`, `make call` and `make invoke`, if none is given."""

MAX_PORT: Final = 65535


def add_template_options(parser: argparse.ArgumentParser) -> None:
    """Add --template, --parameter and --env. `read_variables` reads the values of --env."""
    parser.add_argument("--template", type=Path, default=Path("template.yaml"), help="the SAM template")
    parser.add_argument(
        "--parameter",
        type=_parameter,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of the template",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="set an environment variable of every function; without a value, copy it from this environment",
    )


def read_variables(given: Sequence[str]) -> dict[str, str]:
    """Return the variables in the values of --env. Raises TemplateError."""
    found = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not name:
            raise TemplateError(f"--env {text}: a variable's name is missing; write NAME=value")
        if not separator and name not in os.environ:
            raise TemplateError(f"--env {name}: this variable is not set; write {name}=value")
        found[name] = value if separator else os.environ[name]
    return found


def read_port(text: str) -> int:
    """Return the number of a port. Raises argparse.ArgumentTypeError."""
    number = int(text) if text.isdecimal() else -1
    if not 0 <= number <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number from 0 to {MAX_PORT}")
    return number


def _parameter(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} must be NAME=VALUE")
    return name, value
