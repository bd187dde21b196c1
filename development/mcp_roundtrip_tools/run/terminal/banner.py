"""What `make run` says when it is ready."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from mcp_roundtrip_tools.client.terminal_text import Styles
from mcp_roundtrip_tools.run.api_gateway.routing import has_root
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.issuer.issuer import describe_issuer
from mcp_roundtrip_tools.run.template_options import DEFAULT_PORT
from mcp_roundtrip_tools.template.model import describe_left_out
from mcp_roundtrip_tools.template.parameters import how_to_set

GATEWAY_AUTH_MODES = frozenset({"jwt", "lambda", "iam"})
"""Modes in which API Gateway identifies callers."""


def banner(
    app: LocalApp,
    assumed: Mapping[str, str],
    *,
    fresh: bool = False,
    debug: bool = False,
    styles: Styles = Styles(),  # noqa: B008 - it is immutable
) -> str:
    """Return the URLs of the console and of the endpoint, and what is special about this run."""
    mcp, url = mcp_url(app), console_url(app)
    config = json.dumps({"type": "http", "url": mcp})
    rows = [
        *([("console", url, "call the tools in a browser")] if url else []),
        ("endpoint", mcp, f"in the configuration of a client: {config}"),
        ("terminal", _call_command(mcp), "call the tools in another terminal"),
    ]
    width = max(len(where) for _, where, _ in rows)
    lines = [
        f"  {name:8}  {styles.paint('bold', where)}{' ' * (width - len(where))}  {text}"
        for name, where, text in rows
    ]
    notes = [*_describe_left_out(app), *_describe_parameters(app, assumed)]
    notes += _describe_processes(fresh, debug)
    notes.append("Changed sources are reloaded. Press Ctrl+C to stop.")
    return "\n".join(["", *lines, "", *(f"  {note}" for note in notes), ""])


def _call_command(url: str) -> str:
    """Return the command that lists the tools at a URL; the default port need not be named."""
    port, path = urlsplit(url).port, urlsplit(url).path
    if "MAKELEVEL" in os.environ:
        return "make call" if port == DEFAULT_PORT else f"make call PORT={port}"
    # Without --url it calls /mcp, which an application with one route for all paths serves, too.
    is_default = port == DEFAULT_PORT and path in ("/", "/mcp")
    return "mcp-roundtrip call" if is_default else f"mcp-roundtrip call --url {url}"


def mcp_url(app: LocalApp) -> str:
    """Return the URL of the endpoint."""
    return app.url(app.endpoint_path())


def console_url(app: LocalApp) -> str | None:
    """Return the URL that a person opens for the console: `/` leads to it, unless the template has one."""
    if app.console_url is None or has_root(app.routes()):
        return app.console_url
    return app.url("/")


def _describe_left_out(app: LocalApp) -> list[str]:
    lines = describe_left_out(app.current())
    return ["Not served here:", *(f"  {line}" for line in lines)] if lines else []


def _describe_parameters(app: LocalApp, assumed: Mapping[str, str]) -> list[str]:
    lines = [_describe_assumed(*parameter) for parameter in assumed.items()]
    if app.issuer is not None:
        lines += describe_issuer(app.issuer).splitlines()
    modes = {app.settings(name).get("MCP_AUTH_MODE") for name in app.functions()}
    if refused := sorted(mode for mode in modes if mode in GATEWAY_AUTH_MODES):
        lines.append(
            f"Every call gets 401: AuthMode {refused[0]} needs an API Gateway authorizer, which does not run "
            'here. Use make run PARAMETERS="AuthMode=none", or bearer.'
        )
    return lines


def _describe_assumed(name: str, value: str) -> str:
    if (name, value) == ("AuthMode", "none"):
        return "Callers are anonymous (AuthMode none). With make run USER=ada (--user ada) they sign in."
    return f"{name}={value}, because the template has no default. Change it with {how_to_set(name)}"


def _describe_processes(fresh: bool, debug: bool) -> list[str]:
    if debug:
        return ["Debug mode: one request at a time. breakpoint() opens in this terminal."]
    return ["Every request gets a new process, as in a cold start."] if fresh else []
