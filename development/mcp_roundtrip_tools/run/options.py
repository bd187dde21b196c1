"""The options of a run, and those of the commands that run the functions of a template."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer
from mcp_roundtrip_tools.template.model import TemplateError


@dataclass(frozen=True, slots=True)
class Options:
    """How the functions of the template run."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    """Those of the template."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Added to every function's environment; they override those of `Metadata.LocalRun` in the template."""
    python: str = sys.executable
    """The interpreter of the functions, of the version of this one; it needs awslambdaric."""
    watch_interval_s: float = 1.0
    """The least time between checks of sources: before invocations, and in the background unless 0 or inf."""
    retry_delay_scale: float = 1.0
    """Multiplies the delays after which Lambda repeats a failed asynchronous invocation."""
    container_host: str | None = None
    """The host name by which containers reach services, if connections are led to this computer."""
    fresh: bool = False
    """Whether each invocation gets a new process."""
    debug: bool = False
    """Whether `breakpoint()` in a function stops at the terminal: one event at a time, without timeouts."""
    development_keys: bool = False
    """Whether the KMS keys are the same in each run (`services.kms`)."""


@dataclass(frozen=True, slots=True)
class Addresses:
    """Where the servers of a run listen: `url` is that of the HTTP API, also if it is not served.

    `aws_url` and `container_url` are those of the AWS services for functions and containers. `console_url`
    has a slash at the end; None without a console.
    """

    url: str
    aws_url: str
    container_url: str | None = None
    console_url: str | None = None
    issuer: LocalIssuer | None = None


DEFAULT_PORT: Final = 3000
"""The port of `make run`, `make call` and `make invoke`, if none is given."""

MAX_PORT: Final = 65535


def add_template_options(parser: argparse.ArgumentParser) -> None:
    """Add --template, --parameter and --env. `read_env_options` reads the values of --env."""
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


def read_env_options(given: Sequence[str]) -> dict[str, str]:
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
