"""Serve template.yaml on this computer until a signal stops it."""

import argparse
import errno
import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext, redirect_stdout
from functools import partial
from resource import RLIMIT_NOFILE, getrlimit, setrlimit
from typing import Final, NoReturn, TextIO

from mcp_roundtrip_tools.client.terminal_text import Styles, wants_colours
from mcp_roundtrip_tools.run.issuer.issuer import read_users
from mcp_roundtrip_tools.run.options import DEFAULT_PORT, add_template_options, read_env_options, read_port
from mcp_roundtrip_tools.run.serving import exit_on_signals, serve
from mcp_roundtrip_tools.run.terminal.terminal import JsonLines, Terminal, banner, mcp_url
from mcp_roundtrip_tools.template.model import TemplateError, describe_left_out
from mcp_roundtrip_tools.template.parameters import with_auth_mode


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command until a signal ends it. Raises TemplateError, SettingsError and OSError."""
    options = _parser().parse_args(arguments)
    allowed, most = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (max(allowed, min(_DESCRIPTORS, most)), most))
    try:
        with exit_on_signals(0):
            _serve(options)
    except OSError as error:
        problem = _PORT_PROBLEMS.get(error.errno or 0)
        if problem is None or error.filename is not None:
            raise
        select = "select another port with --port=… or make run PORT=…"
        raise TemplateError(f"port {options.port} {problem} {select}") from None
    return 2


_DESCRIPTORS: Final = 1024
"""Open files: on Linux and Lambda 1,024 are usual, on macOS 256, and each environment needs three here."""

_PORT_PROBLEMS: Final = {
    errno.EADDRINUSE: "is in use: stop the process that uses it, or",
    errno.EACCES: "is reserved for the administrator:",
}


def _serve(options: argparse.Namespace) -> None:
    """Serve the template until a signal. Raises TemplateError, and OSError if the port is in use."""
    given = dict(options.parameter)
    users = read_users(options.user, options.scopes, given)
    parameters = given if users else with_auth_mode(options.template, given)
    styles = Styles(wants_colours(sys.stdout, os.environ))
    put = partial(_print, sys.stdout)
    json_lines = JsonLines(put)
    with (
        redirect_stdout(sys.stderr) if options.json else nullcontext(),  # stand-ins print, too
        serve(
            options.template,
            port=options.port,
            fresh=options.fresh,
            parameters=parameters,
            variables=read_env_options(options.env),
            debug=options.debug,
            retry_delay_scale=options.retry_delay_scale,
            users=users,
            console=not options.no_console,
            log=None,
            listeners=[json_lines if options.json else Terminal(put, styles)],
        ) as app,
    ):
        if options.json:
            started = {"type": "started", "consoleUrl": app.console_url, "mcpUrl": mcp_url(app)}
            json_lines.put({**started, "leftOut": describe_left_out(app.current())})
        else:
            is_anonymous = parameters != given
            put(banner(app, styles, anonymous=is_anonymous))
        _wait_for_parent()


class _Parser(argparse.ArgumentParser):
    """A parser whose errors leave out the usage: make's user gave variables, not these options."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {message} (--help lists the options)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="mcp-roundtrip run", description=__doc__)
    add_template_options(parser)
    parser.add_argument(
        "--port", type=read_port, default=DEFAULT_PORT, help="the port on 127.0.0.1 (0: a free port)"
    )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="breakpoint() in a function stops at this terminal; one event at a time, without timeouts",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="start a new execution environment for every request"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line, for scripts")
    parser.add_argument("--no-console", action="store_true", help="serve no console")
    parser.add_argument(
        "--retry-delay-scale",
        type=float,
        default=1.0,
        metavar="FACTOR",
        help="multiply Lambda's delays of 60 and 120 s before it repeats a failed asynchronous invocation",
    )
    parser.add_argument(
        "--user", metavar="NAMES", help="AuthMode bearer with a local issuer for these users, as in 'ada bob'"
    )
    parser.add_argument("--scopes", help="the scopes of these users, separated by spaces")
    return parser


def _wait_for_parent() -> None:
    """Wait for a signal. Under make, which cannot pass SIGKILL on, return when make has ended."""
    parent = os.getppid()
    while "MAKELEVEL" not in os.environ or os.getppid() == parent:
        time.sleep(1)


def _print(output: TextIO, text: str) -> None:
    """Print a text. End this process if its terminal, or the program that reads the output, has ended.

    Raises OSError if the text cannot be written for another reason, such as a full disk.
    """
    try:
        output.write(f"{text}\n")  # one call, because several threads print
        output.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), output.fileno())  # Python flushes once more
        os.kill(os.getpid(), signal.SIGTERM)
