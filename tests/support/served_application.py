"""template.yaml served over HTTP on this computer, to anonymous callers and to one who has signed in."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from mcp_roundtrip_tools.run import fresh_catalogs, serving
from mcp_roundtrip_tools.run.api_gateway.gateway import MAX_BODY, Gateway
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.template.yaml_reader import load
from support.forked_programs import python_of_functions
from support.mailbox import APPROVERS, Mailbox
from support.project import FUNCTIONS

TEMPLATE = FUNCTIONS.parent / "template.yaml"
FRONT_DOOR = "/mcp"

ISSUER = "https://id.example"
SIGNED_IN = {"AuthMode": "jwt", "TokenIssuer": ISSUER}
"""Parameters of a deployment whose authorizer `signed_in` replaces."""


def with_options(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return parameters as `serve` takes them: those that template.yaml does not have are of the platform."""
    own = load(TEMPLATE)["Parameters"]
    return {name if name in own else f"Platform.{name}": value for name, value in parameters.items()}


def serve(template: Path, **options: Any) -> AbstractContextManager[LocalApp]:
    """Run a template as `serving.serve` does, without a log.

    Its functions and their catalog start in a tenth of the time.
    """
    vars(fresh_catalogs)["sys"] = SimpleNamespace(executable=python_of_functions())
    return serving.serve(template, **{"python": python_of_functions(), "log": None, **options})


@dataclass
class Served:
    """The URL of the front door, and the log lines."""

    url: str
    lines: list[str] = field(default_factory=list)


@contextmanager
def serve_anonymously() -> Iterator[Served]:
    """Serve the application without authorization, as `make run` does."""
    with serve(TEMPLATE, parameters={"AuthMode": "none"}) as app:
        yield Served(app.url(FRONT_DOOR))


def unused_ports() -> Iterator[int]:
    """Yield ports that are not open, below those that the system gives to connections meanwhile."""
    for port in random.sample(range(20_000, 30_000), 100):
        with suppress(OSError):
            socket.create_server(("127.0.0.1", port)).close()
            yield port


@contextmanager
def serve_for_alice(
    mailbox: Mailbox,
    *,
    template: Path = TEMPLATE,
    python: str | None = None,
    variables: Mapping[str, str] | None = None,
    **parameters: str,
) -> Iterator[Served]:
    """Serve the application as behind a JWT authorizer that identifies all callers as Alice."""
    lines: list[str] = []
    parameters |= SIGNED_IN
    with (
        closing(HttpServer(mailbox, max_body=MAX_BODY).start()) as ses,
        serve(
            template,
            parameters=parameters,
            python=python or python_of_functions(),
            log=lines.append,
            variables={"AWS_ENDPOINT_URL_SESV2": ses.url, "APPROVERS": APPROVERS, **(variables or {})},
        ) as app,
        closing(Gateway(app.routes, signed_in(app), app.recorder)) as gateway,
        closing(HttpServer(gateway.respond, max_body=MAX_BODY).start()) as server,
    ):
        yield Served(server.url + FRONT_DOOR, lines)


def signed_in(app: LocalApp) -> Callable[[InvokeRequest], InvocationResult]:
    """Return an invoker that adds the claims of Alice to events, as API Gateway does."""

    def invoke(invocation: InvokeRequest) -> InvocationResult:
        event = json.loads(invocation.payload)
        claims = {"iss": ISSUER, "sub": "alice"}
        event["requestContext"]["authorizer"] = {"jwt": {"claims": claims, "scopes": None}}
        return app.run(replace(invocation, payload=json.dumps(event).encode()))

    return invoke
