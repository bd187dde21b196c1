"""``python -m mcp_roundtrip_local``: serve template.yaml until a signal stops it."""

from __future__ import annotations

import argparse
import errno
import json
import math
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType

from mcp_roundtrip_local.app import LocalApp
from mcp_roundtrip_local.issuer.options import describe_issuer, read_users
from mcp_roundtrip_local.serving import serve
from mcp_roundtrip_local.template.model import Route, TemplateError
from mcp_roundtrip_local.template.parameters import parameters_without_default
from mcp_roundtrip_local.template.validation import how_to_set

ASSUMED_PARAMETERS = {"AuthMode": "none"}
"""Values for required parameters that matter only in a deployment."""

GATEWAY_AUTH_MODES = frozenset({"jwt", "lambda", "iam"})
"""Modes in which API Gateway identifies callers."""


def main(arguments: Sequence[str] | None = None, *, prog: str = "python -m mcp_roundtrip_local") -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    options = _parser(prog).parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _exit_on_signal)
    given = dict(options.parameter)
    try:
        users = read_users(options.user, options.scopes, given)
        assumed = {} if users else _assumed_parameters(options.template, given)
        with serve(
            options.template,
            port=options.port,
            fresh=options.fresh,
            parameters={**assumed, **given},
            variables=_variables(options.env),
            debug=options.debug,
            retry_delay_scale=options.retry_delay_scale,
            users=users,
            log=_print_line,
        ) as app:
            _print_line(banner(app, assumed, fresh=options.fresh, debug=options.debug))
            _wait_for_parent()
    except TemplateError as error:
        _print_error(str(error))
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        _print_error(
            f"port {options.port} is in use: stop the process that uses it, or select another port with "
            "--port=… or make run PORT=…"
        )
    return 2


def banner(app: LocalApp, assumed: Mapping[str, str], *, fresh: bool, debug: bool = False) -> str:
    """Return the start message: routes, URL, and how a client connects."""
    routes = "\n".join(
        f"  {route.method:7} {app.url(_path(route))}  {route.function}" for route in app.routes()
    )
    # The shortest path is the front door's, if there is one.
    url = app.url(
        min((_path(route) for route in app.routes() if "{" not in route.path), key=len, default="/")
    )
    config = json.dumps({"mcpServers": {"local": {"type": "http", "url": url}}})
    return f"""
Serving {app.url("")}. Press Ctrl+C to stop.

{routes}

{_describe_parameters(app, assumed)}{_describe_processes(fresh, debug)} Changed sources are reloaded.

Configuration of an MCP client:

  {config}

The official client (pip install mcp):

  python - <<'EOF'
  import asyncio
  from mcp import Client

  async def main():
      async with Client("{url}") as client:
          for tool in (await client.list_tools()).tools:
              print(tool.name, "-", tool.description)

  asyncio.run(main())
  EOF
"""


def _describe_parameters(app: LocalApp, assumed: Mapping[str, str]) -> str:
    text = "".join(
        f"{name}={value}, because the template has no default. Change it with {how_to_set(name)}\n"
        for name, value in assumed.items()
    )
    if app.issuer is not None:
        text += describe_issuer(app.issuer)
    modes = {function.environment.get("MCP_AUTH_MODE") for function in app.functions().values()}
    if refused := sorted(mode for mode in modes if mode in GATEWAY_AUTH_MODES):
        text += (
            f"Every call gets 401: AuthMode {refused[0]} needs an API Gateway authorizer, which does not run "
            'here. Use make run PARAMETERS="AuthMode=none", or bearer.\n'
        )
    return text


def _describe_processes(fresh: bool, debug: bool) -> str:
    if debug:
        return (
            "Debug mode: one process for all functions, one request at a time. breakpoint() opens in this "
            "terminal."
        )
    if fresh:
        return "A new process for every request (cold starts)."
    return (
        "Processes are reused between requests. make run FRESH=1 (--fresh) starts a new one for each "
        "request; make run DEBUG=1 (--debug) supports breakpoint()."
    )


def _path(route: Route) -> str:
    return "/" if route.path == "$default" else route.path


def _assumed_parameters(template: Path, given: Mapping[str, str]) -> dict[str, str]:
    missing = parameters_without_default(template) - given.keys()
    return {name: value for name, value in ASSUMED_PARAMETERS.items() if name in missing}


def _parser(prog: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("--template", type=Path, default=Path("template.yaml"), help="the SAM template")
    parser.add_argument("--port", type=int, default=3000, help="the port on 127.0.0.1 (0: a free port)")
    parser.add_argument(
        "--debug",
        action="store_true",
        help="run all functions in one process in this terminal, for breakpoint(); one event at a time",
    )
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="set an environment variable of every function; without a value, copy it from this environment",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="start a new execution environment for every request"
    )
    parser.add_argument(
        "--parameter",
        type=_parameter,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set a parameter of the template",
    )
    parser.add_argument(
        "--retry-delay-scale",
        type=_positive,
        default=1.0,
        metavar="FACTOR",
        help="multiply Lambda's delays of 60 and 120 s before it repeats a failed asynchronous invocation",
    )
    parser.add_argument(
        "--user", metavar="NAMES", help="AuthMode bearer with a local issuer for these users, as in 'ada bob'"
    )
    parser.add_argument("--scopes", help="the scopes of these users, separated by spaces")
    return parser


def _variables(given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator and name not in os.environ:
            raise TemplateError(f"--env {name}: this variable is not set; write {name}=value")
        found[name] = value if separator else os.environ[name]
    return found


def _parameter(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError("must be NAME=VALUE")
    return name, value


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise argparse.ArgumentTypeError("must be a positive number")
    return number


def _exit_on_signal(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # ignored during the clean-up
    raise SystemExit(0)


def _wait_for_parent() -> None:
    """Wait for a signal. Under make, which cannot pass SIGKILL on, return when make has ended."""
    parent = os.getppid()
    while "MAKELEVEL" not in os.environ or os.getppid() == parent:
        time.sleep(1)


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")  # one call, because several threads print
    sys.stdout.flush()


def _print_error(text: str) -> None:
    print(f"error: {text}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
