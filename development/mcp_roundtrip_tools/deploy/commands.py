"""The commands ``build``, ``deploy``, ``rollback`` and ``url`` of ``mcp-roundtrip``.

samconfig.toml has the environments. The exit status is 2 if nothing was built or deployed, otherwise sam's.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from mcp_roundtrip_tools.deploy.deployment import Deployment
from mcp_roundtrip_tools.deploy.environments import DEFAULT, Refused, find_sam
from mcp_roundtrip_tools.deploy.target import ARCHITECTURE, RUNTIME
from mcp_roundtrip_tools.template.model import TemplateError


def build(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Build the functions and the layer; return the exit status."""
    parser = _parser(prog, "Build for an environment.")
    _add_sam(parser)
    _add_changes(parser)
    options = parser.parse_args(arguments)
    return _run(lambda: _changed(options).build(find_sam(Path.cwd(), options.sam)))


def deploy(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Check, build and deploy; return the exit status."""
    parser = _parser(prog, "Check, build and deploy to an environment, and ask for what is missing.")
    _add_sam(parser)
    _add_changes(parser)
    parser.add_argument("--check", action="store_true", help="check the names of the parameters, and stop")
    parser.add_argument("--built", action="store_true", help="deploy .aws-sam/build as it is")
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--options", default="", metavar="'…'", help="more options for sam deploy")
    options = parser.parse_args(arguments)

    def check_and_deploy() -> int:
        deployment = _changed(options)
        if options.check:
            return 0
        return deployment.deploy(
            find_sam(Path.cwd(), options.sam),
            artefact_exists=options.built,
            asks=sys.stdin.isatty() and not options.yes,
            options=shlex.split(options.options),
        )

    return _run(check_and_deploy)


def rollback(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Deploy what ran before the last deployment; return the exit status."""
    parser = _parser(prog, "Deploy to an environment what ran before the last deployment.")
    _add_sam(parser)
    parser.add_argument("--options", default="", metavar="'…'", help="more options for sam deploy")
    options = parser.parse_args(arguments)
    return _run(
        lambda: _deployment(options).rollback(find_sam(Path.cwd(), options.sam), shlex.split(options.options))
    )


def url(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Print the URL of the endpoint; return the exit status."""
    options = _parser(prog, "Print the URL of the endpoint of an environment.").parse_args(arguments)

    def show() -> int:
        print(_deployment(options).endpoint())
        return 0

    return _run(show)


def _run(command: Callable[[], int]) -> int:
    try:
        return command()
    except (Refused, TemplateError) as error:
        print("\n".join(f"error: {line}" for line in str(error).splitlines()), file=sys.stderr)
    except (KeyboardInterrupt, EOFError):
        print("\nNothing was deployed.", file=sys.stderr)
    return 2


def _deployment(options: argparse.Namespace) -> Deployment:
    return Deployment.of(Path.cwd(), options.env)


def _changed(options: argparse.Namespace) -> Deployment:
    return _deployment(options).with_changes(_changes(options))


def _changes(options: argparse.Namespace) -> Mapping[str, str | None]:
    """Return the parameters of the command line: their values, or None to return to the default."""
    changes: dict[str, str | None] = {}
    for word in shlex.split(options.parameters):
        name, separator, value = word.partition("=")
        changes[name] = value if separator else None
    target = {RUNTIME: options.runtime, ARCHITECTURE: options.architecture}
    return {**changes, **{name: value for name, value in target.items() if value}}


def _parser(prog: str, description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=description)
    parser.add_argument(
        "--env", default=DEFAULT, help="the environment of samconfig.toml (default: %(default)s)"
    )
    return parser


def _add_sam(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sam", type=Path, help="the sam to run (default: that of PATH)")


def _add_changes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameters",
        default="",
        metavar="'NAME=VALUE NAME'",
        help="parameters of template.yaml to set and save; a name without a value returns to its default",
    )
    parser.add_argument("--runtime", default="", help=f"{RUNTIME}, such as python3.13")
    parser.add_argument("--architecture", default="", help=f"{ARCHITECTURE}: arm64 or x86_64")
