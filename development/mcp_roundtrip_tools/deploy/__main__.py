"""``python -m mcp_roundtrip_tools.deploy``: build and deploy template.yaml to an environment.

samconfig.toml has the environments. ``build`` builds for the target of the environment. ``check`` only says
what would be refused. ``deploy`` asks for what is missing, checks, builds and deploys. ``rollback`` deploys
what ran before. ``url`` prints the URL of the endpoint. Exit status: 2 if nothing was built or deployed,
otherwise sam's.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from mcp_roundtrip_tools.deploy.deployment import Deployment
from mcp_roundtrip_tools.deploy.environments import DEFAULT
from mcp_roundtrip_tools.deploy.errors import Refused
from mcp_roundtrip_tools.template.model import TemplateError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        deployment = Deployment.of(Path.cwd(), options.env, options.sam)
        deployment = deployment.with_changes(_changes(options))
        match options.command:
            case "build":
                return deployment.build()
            case "check":
                deployment.check()
                return 0
            case "rollback":
                return deployment.rollback(shlex.split(options.options))
            case "url":
                print(deployment.endpoint())
                return 0
        return deployment.deploy(
            artefact_exists=options.built,
            asks=sys.stdin.isatty() and not options.yes,
            options=shlex.split(options.options),
        )
    except (Refused, TemplateError) as error:
        print("\n".join(f"error: {line}" for line in str(error).splitlines()), file=sys.stderr)
    except (KeyboardInterrupt, EOFError):
        print("\nNothing was deployed.", file=sys.stderr)
    return 2


def _changes(options: argparse.Namespace) -> Mapping[str, str | None]:
    """Return the parameters of the command line: their values, or None to return to the default."""
    changes: dict[str, str | None] = {}
    for word in shlex.split(options.parameters):
        name, separator, value = word.partition("=")
        changes[name] = value if separator else None
    target = {"PythonRuntime": options.runtime, "Architecture": options.architecture}
    return {**changes, **{name: value for name, value in target.items() if value}}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mcp_roundtrip_tools.deploy", description=__doc__)
    parser.add_argument("command", choices=["build", "check", "deploy", "rollback", "url"])
    parser.add_argument("--env", default=DEFAULT, help="the environment of samconfig.toml")
    parser.add_argument(
        "--parameters",
        default="",
        metavar="'NAME=VALUE NAME'",
        help="parameters of template.yaml to set and save; a name without a value returns to its default",
    )
    parser.add_argument("--runtime", default="", help="PythonRuntime, such as python3.13")
    parser.add_argument("--architecture", default="", help="Architecture: arm64 or x86_64")
    parser.add_argument("--built", action="store_true", help="deploy .aws-sam/build as it is")
    parser.add_argument("--yes", action="store_true", help="ask nothing")
    parser.add_argument("--options", default="", metavar="'…'", help="more options for sam deploy")
    parser.add_argument("--sam", type=Path, default=Path(".venv-sam/bin/sam"), help="the sam to run")
    return parser


if __name__ == "__main__":
    sys.exit(main())
