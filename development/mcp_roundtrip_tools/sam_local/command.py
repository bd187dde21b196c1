"""Prepare `sam local`: serve the emulated AWS services to its containers until Ctrl+C.

Runs the services of `mcp-roundtrip run`, leads a Docker network to them, and writes to events/live/ the
variables of the functions (env.json) and events with a valid requestState. Prints the command to type next.
"""

import argparse
import json
import re
import secrets
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.call.errors import CallFailed
from mcp_roundtrip_tools.call.questions import GivenAnswers
from mcp_roundtrip_tools.client.sample_values import sample_answer
from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from mcp_roundtrip_tools.deploy.environments import INSTALLED
from mcp_roundtrip_tools.events import write
from mcp_roundtrip_tools.invoke.next_event import Requests, next_event, requests_of, task_of
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.execution.runtime_api import InvokeRequest
from mcp_roundtrip_tools.run.options import add_template_options, read_env_options
from mcp_roundtrip_tools.run.serving import exit_on_signals, serve
from mcp_roundtrip_tools.run.terminal.terminal import mcp_url
from mcp_roundtrip_tools.sam_local.network import network
from mcp_roundtrip_tools.template.functions import find_function
from mcp_roundtrip_tools.template.model import REGION, TemplateError
from mcp_roundtrip_tools.template.parameters import with_auth_mode

_SERVER: Final = re.compile(r"http://127\.0\.0\.1:\d+")


def addresses(app: LocalApp, host: str) -> dict[str, str]:
    """Return the URLs of the services and stand-ins of the run, with their URLs for containers."""
    assert app.addresses.container_url is not None
    values = [value for name in app.functions() for value in app.function_variables(name).values()]
    servers = {url for value in values for url in _SERVER.findall(value)} - {app.url("")}
    in_network = {url: f"http://{host}:{urlsplit(url).port}" for url in servers}
    return {**in_network, app.addresses.aws_url: app.addresses.container_url}


def container_variables(app: LocalApp, in_network: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the file for `--env-vars`. `in_network` has URLs for containers by those for this computer."""

    def moved(value: str) -> str:
        return _SERVER.sub(lambda url: in_network.get(url[0], url[0]), value)

    return {
        function.logical_id: {
            name: moved(value)
            for name, value in {**app.function_variables(function.name), **app.endpoints}.items()
        }
        for function in app.functions().values()
    }


LIVE: Final = "live"
ANSWERS: Final = "answers.json"

MAX_ROUNDS: Final = 5

Invoke = Callable[[str, Any], Any]
"""Takes the folder name of a function and an event; returns the function's response."""


def live_events(invoke: Invoke, folder: Path) -> dict[str, Any]:
    """Return the events by their paths in `folder`, which has the sample events by functions' folders."""
    given = given_answers(folder)
    found = {}
    for path in sorted(folder.glob("**/*.json")):
        place = path.relative_to(folder)
        if place.parts[0] != LIVE and len(place.parts) > 1:
            try:
                with redirect_stdout(None):  # a stand-in prints e-mails, and no event continues these calls
                    rounds = next_rounds(invoke, place.parent.name, _read(path), given)
            except (TemplateError, CallFailed) as error:
                print(f"{path} is left out: {error}", file=sys.stderr)
                continue
            for number, event in enumerate(rounds, 2):
                found[f"{LIVE}/{place.with_suffix('')}.{number}.json"] = event
    return found


def next_rounds(
    invoke: Invoke, function: str, event: Any, given: GivenAnswers, most: int = MAX_ROUNDS - 1
) -> list[Any]:
    """Return the events of the rounds after the first: at most `most`, while the responses ask.

    Raises TemplateError, and CallFailed for an answer.
    """
    played = [event]
    while len(played) <= most:
        response = invoke(function, played[-1])
        if task_of(response):
            # A repeated round of a call that is a task returns the task. So play it without its last round.
            return next_rounds(invoke, function, event, given, len(played) - 1)
        if not (requests := requests_of(response)) or _opens_page(requests):
            break
        played.append(next_event(played[-1], response, lambda asked: _answers(asked, given)))
    return played[1:]


def _opens_page(requests: Requests) -> bool:
    """Return whether a round with the answers would wait for a person at a page."""
    return any(request.get("params", {}).get("mode") == "url" for request in requests.values())


def _answers(requests: Requests, given: GivenAnswers) -> dict[str, Any]:
    return {key: given.find(key, request) or sample_answer(request) for key, request in requests.items()}


def given_answers(folder: Path) -> GivenAnswers:
    """Return the answers that are written beside the events, by key."""
    path = folder / ANSWERS
    return GivenAnswers(_read(path) if path.is_file() else {})


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise TemplateError(f"{path.name} is not JSON: {error}") from None


ENV_VARS: Final = f"{LIVE}/env.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command until Ctrl+C. Raises TemplateError."""
    parser = argparse.ArgumentParser(
        prog="mcp-roundtrip sam-local",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_template_options(parser)
    given = parser.parse_args(arguments)
    with exit_on_signals(0):
        _serve(given)
    return 0


def _serve(given: argparse.Namespace) -> None:
    template = given.template
    # No web page knows the name, so it protects what has no access key (serving, browser_protection).
    host = f"mcp-roundtrip-{secrets.token_hex(8)}"
    is_prepared = threading.Event()
    with serve(
        template,
        container_host=host,
        log=lambda line: print(line, flush=True) if is_prepared.is_set() else None,
        parameters=with_auth_mode(template, dict(given.parameter)),
        variables=read_env_options(given.env),
        console=False,
    ) as app:
        in_network = addresses(app, host)
        ports = sorted({port for url in in_network.values() if (port := urlsplit(url).port)})
        with network(host, _image(app), ports):
            events = template.parent / "events"
            written = live_events(partial(invoke_in, app), events)
            shutil.rmtree(events / LIVE, ignore_errors=True)  # those of an earlier run have other keys
            write(events, {**written, ENV_VARS: container_variables(app, in_network)})
            text = next_command(
                written, lambda folder: find_function(app.current(), folder).logical_id, host, app.folder
            )
            print(f"{text}\nThe same functions, and the tasks: {mcp_url(app)}", flush=True)
            is_prepared.set()
            signal.pause()


def invoke_in(app: LocalApp, function: str, event: Any) -> Any:
    """Run a function, by the folder of its events, and return its response, also if it failed."""
    name = find_function(app.current(), function).name
    return json.loads(app.run(InvokeRequest(name, json.dumps(event).encode())).payload)


def _image(app: LocalApp) -> str:
    """Return the image that sam runs functions in."""
    runtime = max(function.runtime for function in app.functions().values()).removeprefix("python")
    return f"public.ecr.aws/lambda/python:{runtime}-{NATIVE_ARCHITECTURE}"


def next_command(
    written: Iterable[str], logical_id: Callable[[str], str], network: str, project: Path
) -> str:
    """Return what to type in another terminal, in the folder of the project.

    `logical_id` finds a function by the folder of its events.
    """
    sam = INSTALLED if (project / INSTALLED).exists() else "sam"
    options = f"--env-vars events/{ENV_VARS} --docker-network {network} --region {REGION}"
    commands = [f"  {sam} local invoke FUNCTION -e EVENT {options}"]  # no event asks
    if written := sorted(written):
        # Those of one folder are in payload format 2.0, as API Gateway sends them.
        first = min(written, key=lambda file: (file.count("/"), not file.endswith("/call.2.json")))
        event = f"{first.removeprefix(f'{LIVE}/').partition('.')[0]}.json"
        function = logical_id(Path(event).parent.name)
        commands = [f"  {sam} local invoke {function} -e events/{each} {options}" for each in (event, first)]
    return "\n".join(["", f"In another terminal, in {project}, until Ctrl+C here:", "", *commands, ""])
