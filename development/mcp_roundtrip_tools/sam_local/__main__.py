"""Prepare `sam local`: serve the emulated AWS services to its containers until Ctrl+C.

Runs the services of `mcp-roundtrip run`, leads a Docker network to them, and writes to events/live/ the
variables of the functions (env.json) and events with a valid requestState. Prints the command to type next.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from mcp_roundtrip_tools.deploy.environments import INSTALLED
from mcp_roundtrip_tools.events.__main__ import write
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.serving import serve
from mcp_roundtrip_tools.run.template_options import (
    add_template_options,
    assumed_parameters,
    read_variables,
)
from mcp_roundtrip_tools.sam_local.live_events import LIVE, addresses, container_variables, live_events
from mcp_roundtrip_tools.sam_local.network import network
from mcp_roundtrip_tools.template.functions import find_function
from mcp_roundtrip_tools.template.model import TemplateError

ENV_VARS: Final = f"{LIVE}/env.json"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    parser = argparse.ArgumentParser(
        prog="mcp-roundtrip sam-local",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_template_options(parser)
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            _serve(given)
    except TemplateError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def _serve(given: argparse.Namespace) -> None:
    template, parameters = given.template, dict(given.parameter)
    # No web page knows the name, so it protects what has no access key (serving, browser_protection).
    host = f"mcp-roundtrip-{secrets.token_hex(8)}"
    is_prepared = threading.Event()
    with serve(
        template,
        container_host=host,
        log=lambda line: print(line, flush=True) if is_prepared.is_set() else None,
        parameters={**assumed_parameters(template, parameters), **parameters},
        variables=read_variables(given.env),
        console=False,
    ) as app:
        in_network = addresses(app, host)
        ports = sorted({port for url in in_network.values() if (port := urlsplit(url).port)})
        with network(host, _image(app), ports):
            events = template.parent / "events"
            written = live_events(partial(invoke_in, app), events)
            write(events, {**written, ENV_VARS: container_variables(app, in_network)})
            print(next_command(written, lambda folder: find_function(app.current(), folder).logical_id, host))
            sys.stdout.flush()
            is_prepared.set()
            signal.pause()


def invoke_in(app: LocalApp, function: str, event: Any) -> Any:
    """Run a function, by the folder of its events, and return its response, also if it failed."""
    name = find_function(app.current(), function).name
    return json.loads(app.run(name, json.dumps(event).encode()).payload)


def _image(app: LocalApp) -> str:
    """Return the image that sam runs functions in."""
    runtime = max(function.runtime for function in app.functions().values()).removeprefix("python")
    return f"public.ecr.aws/lambda/python:{runtime}-{NATIVE_ARCHITECTURE}"


def next_command(written: Iterable[str], logical_id: Callable[[str], str], network: str) -> str:
    """Return what to type in another terminal.

    `written` are the live events, and `logical_id` finds a function by the folder of its events.
    """
    sam = INSTALLED if INSTALLED.exists() else "sam"
    options = f"--env-vars events/{ENV_VARS} --docker-network {network}"
    commands = [f"  {sam} local invoke FUNCTION -e EVENT {options}"]  # no event asks
    if written := sorted(written):
        # Those of one folder are in payload format 2.0, as API Gateway sends them.
        first = min(written, key=lambda file: (file.count("/"), not file.endswith("/call.2.json")))
        event = f"{first.removeprefix(f'{LIVE}/').partition('.')[0]}.json"
        function = logical_id(Path(event).parent.name)
        commands = [f"  {sam} local invoke {function} -e events/{each} {options}" for each in (event, first)]
    return "\n".join(["", "In another terminal, until Ctrl+C here:", "", *commands, ""])
