"""The commands ``build``, ``deploy``, ``rollback`` and ``url`` of ``mcp-roundtrip``.

samconfig.toml has the environments. The exit status is 2 if nothing was built or deployed, otherwise sam's.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mcp_roundtrip_tools.deploy.deployment import Deployment
from mcp_roundtrip_tools.deploy.environments import DEFAULT, Refused, find_sam
from mcp_roundtrip_tools.deploy.target import ARCHITECTURE, RUNTIME
from mcp_roundtrip_tools.template.model import TemplateError


def build(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Build the functions and the layer; return the exit status."""
    parser = _parser(prog, "Build for an environment.", changes=True)
    given = parser.parse_args(arguments)
    return _run(lambda: _changed(given).build(find_sam(Path.cwd(), given.sam)))


def deploy(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Check, build and deploy; return the exit status."""
    description = "Check, build and deploy to an environment, and ask for what is missing."
    parser = _parser(prog, description, changes=True, deploys=True)
    parser.add_argument("--check", action="store_true", help="check the names of the parameters, and stop")
    parser.add_argument("--built", action="store_true", help="deploy .aws-sam/build as it is")
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    given = parser.parse_args(arguments)

    def check_and_deploy() -> int:
        deployment = _changed(given)
        if given.check:
            return 0
        sam, asks = find_sam(Path.cwd(), given.sam), sys.stdin.isatty() and not given.yes
        options = shlex.split(given.options)
        return deployment.deploy(sam, artefact_exists=given.built, asks=asks, options=options)

    return _run(check_and_deploy)


def rollback(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Deploy what ran before the last deployment; return the exit status."""
    parser = _parser(prog, "Deploy to an environment what ran before the last deployment.", deploys=True)
    given = parser.parse_args(arguments)

    def deploy_again() -> int:
        sam, options = find_sam(Path.cwd(), given.sam), shlex.split(given.options)
        return Deployment.of(Path.cwd(), given.env).rollback(sam, options)

    return _run(deploy_again)


def url(arguments: Sequence[str] | None = None, *, prog: str) -> int:
    """Print the URL of the endpoint; return the exit status."""
    given = _parser(prog, "Print the URL of the endpoint of an environment.").parse_args(arguments)

    def show() -> int:
        print(Deployment.of(Path.cwd(), given.env).endpoint())
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


def _changed(given: argparse.Namespace) -> Deployment:
    """Return the deployment with the parameters of the command line; None returns one to its default."""
    changes: dict[str, str | None] = {}
    for word in shlex.split(given.parameters):
        name, separator, value = word.partition("=")
        changes[name] = value if separator else None
    target = {RUNTIME: given.runtime, ARCHITECTURE: given.architecture}
    changes |= {name: value for name, value in target.items() if value}
    return Deployment.of(Path.cwd(), given.env).with_changes(changes)


def _parser(
    prog: str, description: str, *, changes: bool = False, deploys: bool = False
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=description)
    add = parser.add_argument
    add("--env", default=DEFAULT, help="the environment of samconfig.toml (default: %(default)s)")
    if changes or deploys:
        add("--sam", type=Path, help="the sam to run (default: that of PATH)")
    if deploys:
        add("--options", default="", metavar="'…'", help="more options for sam deploy")
    if changes:
        text = "parameters of template.yaml to set and save; a name without a value returns to its default"
        add("--parameters", default="", metavar="'NAME=VALUE NAME'", help=text)
        add("--runtime", default="", help=f"{RUNTIME}, such as python3.13")
        add("--architecture", default="", help=f"{ARCHITECTURE}: arm64 or x86_64")
    return parser
