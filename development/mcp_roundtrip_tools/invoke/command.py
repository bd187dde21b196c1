"""``mcp-roundtrip invoke``: run a function of template.yaml with an event, without Docker."""

import argparse
import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.call.errors import CallFailed, Status, usage_error
from mcp_roundtrip_tools.call.questions import Questions, add_answer_options, given_answers
from mcp_roundtrip_tools.call.terminal import Terminal
from mcp_roundtrip_tools.client.http import LOOPBACK, Unreachable, member, request
from mcp_roundtrip_tools.client.terminal_text import Styles, printable_json, wants_colours
from mcp_roundtrip_tools.invoke.next_event import called_name, next_event, task_of
from mcp_roundtrip_tools.run.app import Invoked, invoke_with_log
from mcp_roundtrip_tools.run.observation.records import Event, Note, Printed
from mcp_roundtrip_tools.run.options import DEFAULT_PORT, add_template_options, read_env_options, read_port
from mcp_roundtrip_tools.run.serving import exit_on_signals, serve
from mcp_roundtrip_tools.template.functions import find_function
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.parameters import with_auth_mode

Show = Callable[[str], None]
"""Receives the lines of the log."""


def invoke_once(
    template: Path,
    function: str | None,
    event: str,
    show: Show,
    *,
    parameters: Mapping[str, str],
    variables: Mapping[str, str],
) -> Invoked:
    """Run a function once, with development keys. `show` gets the lines. Raises TemplateError."""

    def listen(happened: Event) -> None:
        match happened:
            case Printed(line=line):
                show(line.text)
            case Note():
                show(happened.text)

    with (
        redirect_stdout(sys.stderr),  # stand-ins print, too
        serve(
            template,
            port=None,
            parameters=parameters,
            variables=variables,
            log=None,
            listeners=[listen],
            watch_interval_s=math.inf,
            development_keys=True,
        ) as app,
    ):
        name = find_function(app.current(), function).name
        show(f"Invoking {name} with development keys and empty tables")
        invoked = invoke_with_log(app, name, event)
        if task_id := task_of(json.loads(invoked.payload)):
            show(f"The task {task_id} ends with this command. To follow a task, start make run before.")
    return invoked


_WAIT_S: Final = 86_400.0
"""A function may run for 15 minutes, and in debug mode until its user continues."""

_HEADERS: Final = {"content-type": "application/json", "x-console": "1"}


def invoke_in_run(port: int, template: Path, function: str | None, event: str, show: Show) -> Invoked | None:
    """Run a function in the `make run` at this port; None if none has this template. Raises TemplateError."""
    console = _console(port)
    if console is None:
        return None
    body = json.dumps({"template": str(template.resolve()), "function": function, "event": event}).encode()
    url = f"{console}console/api/invocations"
    try:
        answer = request("POST", url, _HEADERS, body, timeout_s=_WAIT_S)
    except Unreachable as error:
        raise TemplateError(f"make run at port {port} did not answer: {error}") from None
    message = member(answer, "message")
    if answer.status_code == 409 or (answer.status_code != 200 and message is None):  # of another program
        return None
    if answer.status_code != 200:
        raise TemplateError(f"make run at port {port}: {message}")
    invoked = Invoked(**answer.json())
    show(f"Invoking {invoked.function} in make run at port {port}")
    for line in invoked.log_lines:
        show(line)
    return invoked


def _console(port: int) -> str | None:
    """Return the URL of the console of a run, with a slash at the end; None if nothing leads to one."""
    try:
        found = request("GET", f"http://127.0.0.1:{port}/console/", {"accept": "text/html"})
    except Unreachable:
        return None
    location = found.headers.get("location", "")
    parts = urlsplit(location)
    is_console = found.status_code == 302 and parts.hostname in LOOPBACK and parts.path == "/"
    return location if is_console else None


DESCRIPTION: Final = "Run a function of template.yaml with an event, without Docker."

EPILOG: Final = """\
The response is printed to standard output, and the log to standard error. The exit status is 0 for a
response, also for an error of MCP; 1 if the function failed; 2 for a wrong option or a question without an
answer.

If make run serves this template at the port, it runs the function: with its keys, its tables and its console.
Otherwise, and with --parameter or --env, this command starts what the function needs, and stops it.
Its keys are the same each time, so a state is valid in the next run, for ten minutes. Tables, buckets, queues
and asynchronous invocations end with the command: for tasks, start make run.

The next round of a call has the same event. Save the response before:
  mcp-roundtrip invoke weather -e events/weather/call.json > 1.json
  mcp-roundtrip invoke weather -e events/weather/call.json --round 1.json"""


def main(arguments: Sequence[str] | None = None, *, terminal: Terminal | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    terminal = terminal or Terminal()
    try:
        with exit_on_signals():
            invoked = _invoke(options, _event(options, terminal))
    except CallFailed as error:
        terminal.show(f"error: {error}", "red")
        return error.status
    except TemplateError as error:
        terminal.show(f"error: {error}", "red")
        return Status.USAGE
    print(printable_json(json.loads(invoked.payload)))
    return Status.ERROR if invoked.failed else Status.RESULT


def _invoke(options: argparse.Namespace, event: str) -> Invoked:
    styles = Styles(wants_colours(sys.stderr, os.environ))

    def show(text: str) -> None:
        for line in text.split("\n"):
            print("\t".join(map(styles.clean, line.split("\t"))), file=sys.stderr, flush=True)

    if not options.parameter and not options.env:
        invoked = invoke_in_run(options.port, options.template, options.function, event, show)
        if invoked is not None:
            return invoked
    return invoke_once(
        options.template,
        options.function,
        event,
        show,
        parameters=with_auth_mode(options.template, dict(options.parameter)),
        variables=read_env_options(options.env),
    )


def _event(options: argparse.Namespace, terminal: Terminal) -> str:
    """Return the event as JSON; with --round, that of the next round. Raises CallFailed."""
    if options.event is None:
        raise usage_error("Name the file of the event with -e (make invoke EVENT=…).")
    text = _read(options.event)
    event = _parse(options.event, text)
    if options.round is None:
        if options.answers or options.sample or options.root:
            raise usage_error("Answers need the last response: pass its file with --round (ROUND=…).")
        return text
    if "-" == options.round == options.event:
        raise usage_error("Only one of the event and the response can come from standard input.")
    response = _parse(options.round, _read(options.round))
    questions = Questions(called_name(event), terminal, given_answers(options))
    return json.dumps(next_event(event, response, questions.answer), ensure_ascii=False)


def _read(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        text.encode()  # standard input may stand for other bytes with surrogates
    except OSError as error:
        raise usage_error(f"{file} cannot be read: {error.strerror}.") from None
    except UnicodeError:
        raise usage_error(f"{file} is not UTF-8.") from None
    return text


def _parse(file: str, text: str) -> Any:
    name = "Standard input" if file == "-" else file
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise usage_error(f"{name} is not JSON: {error}.") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mcp-roundtrip invoke",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "function",
        nargs="?",
        metavar="FUNCTION",
        help="its logical id, folder or name; not needed if the template has one function",
    )
    add("-e", "--event", metavar="FILE", help="the event in JSON; -: standard input")
    add("--round", metavar="FILE", help="the last response: answer its questions, and pass on its state")
    add_answer_options(parser)
    add("--port", type=read_port, default=DEFAULT_PORT, help="the port of make run (default: %(default)s)")
    add_template_options(parser)
    return parser
