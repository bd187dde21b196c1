"""The commands ``build``, ``deploy``, ``rollback`` and ``url``. The first three return the status of sam."""

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from mcp_roundtrip_tools.deploy.deployment import ARCHITECTURE, RUNTIME, Deployment
from mcp_roundtrip_tools.deploy.environments import DEFAULT, find_sam


def build(arguments: Sequence[str] | None = None) -> int:
    """Build the functions and the layer; return the exit status. Raises Refused and TemplateError."""
    given = _parser("build", "Build for an environment.", changes=True).parse_args(arguments)
    return _changed(given).build(find_sam(Path.cwd(), given.sam))


def deploy(arguments: Sequence[str] | None = None) -> int:
    """Check, build and deploy; return the exit status. Raises Refused and TemplateError."""
    description = "Check, build and deploy to an environment, and ask for what is missing."
    parser = _parser("deploy", description, changes=True, deploys=True)
    parser.add_argument("--built", action="store_true", help="deploy .aws-sam/build as it is")
    given = parser.parse_args(arguments)
    deployment = _changed(given)
    sam, options = find_sam(Path.cwd(), given.sam), shlex.split(given.options)
    asks = sys.stdin.isatty()
    return deployment.deploy(sam, artefact_exists=given.built, asks=asks, options=options)


def rollback(arguments: Sequence[str] | None = None) -> int:
    """Deploy what ran before; return the exit status. Raises Refused and TemplateError."""
    description = "Deploy to an environment what ran before the last deployment."
    given = _parser("rollback", description, deploys=True).parse_args(arguments)
    sam, options = find_sam(Path.cwd(), given.sam), shlex.split(given.options)
    return Deployment.of(Path.cwd(), given.env).rollback(sam, options)


def url(arguments: Sequence[str] | None = None) -> int:
    """Print the URL of the endpoint; return the exit status. Raises Refused and TemplateError."""
    given = _parser("url", "Print the URL of the endpoint of an environment.").parse_args(arguments)
    print(Deployment.of(Path.cwd(), given.env).endpoint())
    return 0


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
    command: str, description: str, *, changes: bool = False, deploys: bool = False
) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"mcp-roundtrip {command}", description=description)
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
