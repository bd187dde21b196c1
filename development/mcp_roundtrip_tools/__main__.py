"""The command ``mcp-roundtrip``: each subcommand is the `main` of a module, imported when it is used."""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from io import StringIO, TextIOWrapper
from pathlib import Path

from mcp_roundtrip.errors import McpRoundtripError

PROGRAM = "mcp-roundtrip"

LOCAL = frozenset({"anyio", "awslambdaric", "boto3", "botocore", "h11", "httpx2", "mcp", "mcp_types", "yaml"})
"""What the extra `local` installs, by the names of the modules."""


@dataclass(frozen=True, slots=True)
class Command:
    """A subcommand. `module` has `function(arguments)`, which returns the exit status.

    It raises McpRoundtripError and OSError for what the user can correct.
    """

    module: str
    text: str
    function: str = "main"


COMMANDS: Mapping[str, Command] = {
    "new": Command("new.command", "write a new application"),
    "run": Command("run.command", "serve template.yaml on this computer"),
    "call": Command("call.command", "call a tool, and answer its questions here"),
    "invoke": Command("invoke.command", "run a function with an event, without Docker"),
    "new-tool": Command("growth.new_tool_and_function", "add a tool to a function", "new_tool"),
    "new-function": Command(
        "growth.new_tool_and_function", "add a function with a role of its own", "new_function"
    ),
    "add": Command("growth.add_pipeline_or_edge", "add a GitHub workflow that deploys, or CloudFront"),
    "upgrade": Command("new.upgrade", "replace platform/ by that of the package"),
    "lint": Command("lint.checking", "find code that differs when a tool is replayed"),
    "catalog": Command("catalog.catalog", "write the front door's catalog, manifests of skills"),
    "events": Command("events", "write events for sam local invoke"),
    "build": Command("deploy.commands", "build for an environment", "build"),
    "deploy": Command("deploy.commands", "check, build and deploy", "deploy"),
    "rollback": Command("deploy.commands", "deploy what ran before", "rollback"),
    "url": Command("deploy.commands", "print the URL of the endpoint", "url"),
    "prune": Command("prune", "delete versions of workers that nothing needs"),
    "smoke": Command("smoke.run", "check a deployed endpoint from the outside"),
    "sam-local": Command("sam_local.command", "prepare sam local: services, variables, live events"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its exit status: 2 for an error that the user can correct."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.stdin = sys.stdin or StringIO()  # it is None where the shell closed it (<&-)
    # Likewise `2>&-`; the file takes descriptor 2, which a socket would get.
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 for the whole process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a locale without UTF-8 has not all characters
            stream.reconfigure(errors="backslashreplace")
    match given:
        case ["--version" | "-V"]:
            print(f"{PROGRAM} {version(PROGRAM)}")
            return 0
        case ["--help" | "-h" | "help"]:
            print(usage())
            return 0
        case [name, *rest] if name in COMMANDS:
            return _run(name, rest)
        case [name, *_]:
            print(f"error: {PROGRAM} has no command {name!r}\n\n{usage()}", file=sys.stderr)
        case _:
            print(usage(), file=sys.stderr)
    return 2


def usage() -> str:
    """Return the list of the subcommands."""
    rows = "\n".join(f"  {name:14}{command.text}" for name, command in COMMANDS.items())
    return f"""\
usage: {PROGRAM} COMMAND [OPTION …]

{rows}

{PROGRAM} COMMAND --help lists the options of a command; {PROGRAM} --version prints the version.
A new application in two commands: {PROGRAM} new orders && make -C orders run"""


def _run(name: str, arguments: Sequence[str]) -> int:
    command = COMMANDS[name]
    try:
        module = import_module(f"mcp_roundtrip_tools.{command.module}")
        status: int = getattr(module, command.function)(arguments)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in LOCAL:
            raise
        print(f"error: {error.name} is not installed: pip install '{PROGRAM}[local]'", file=sys.stderr)
    except (McpRoundtripError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
    except (KeyboardInterrupt, EOFError):
        print(file=sys.stderr)
        return 130
    else:
        return status
    return 2


if __name__ == "__main__":
    sys.exit(main())
