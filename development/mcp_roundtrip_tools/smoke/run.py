"""``mcp-roundtrip smoke``: all checks of the endpoint URL, in order, with settings from the environment.

The exit status is 0 if the endpoint works, 1 if something is wrong, and 2 if a setting cannot be read.
Settings come from the environment, because other users of a computer can read command lines.
"""

import argparse
import json
import os
import ssl
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlsplit

from mcp.shared.exceptions import MCPError

from mcp_roundtrip.protocol.constants import TOOLS_CALL
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.client.connection import Connection, Result, next_round
from mcp_roundtrip_tools.client.http import Unreachable, error_of, explain, is_trustworthy
from mcp_roundtrip_tools.client.sample_values import sample_answer
from mcp_roundtrip_tools.smoke import authorization
from mcp_roundtrip_tools.smoke.checked_endpoint import AwsSignature, Endpoint, Findings, Stopped, fetch_token

T = TypeVar("T")

MAX_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool to try. The tool should ask a question and have no side effects."""

    tool: str
    arguments: Mapping[str, Any]


def check_tools(connection: Connection, findings: Findings) -> Mapping[str, Result]:
    """Check that the endpoint lists tools; return them by name. Raises Stopped if there are none."""
    hint = "The function cannot list its tools (log event misconfigured)"
    listed = _checked(connection, findings, "tools", hint, connection.tools)
    if not listed:
        raise findings.stop(
            "tools",
            "The endpoint lists no tools: the front door's catalog.json is empty (run make catalog and "
            "deploy), or the caller's scopes hide all tools.",
        )
    findings.ok("tools", f"The endpoint lists {len(listed)} tools: {', '.join(sorted(listed)[:10])}.")
    return listed


def check_owner(connection: Connection, tool: str, findings: Findings) -> None:
    """Check that the front door reaches the function of a tool, without running the tool.

    The function refuses the invalid requestState before it calls the tool. Raises Stopped if it does not.
    """
    params = {"name": tool, "arguments": {}, "requestState": "smoke"}
    hint = (
        f"The front door cannot reach the function of {tool}: MCP_OWNERS does not name it, its role may not "
        "invoke it, or the function does not start (log misconfigured, forwarding_failed)"
    )
    try:
        connection.request(TOOLS_CALL, params)
    except MCPError as error:
        response = connection.last
        if response is None or error.code == INTERNAL_ERROR or response.status_code == 403:
            raise _stop(connection, findings, "function", hint) from None
    findings.ok("function", f"The function of {tool} answers.")


def check_call(connection: Connection, call: Call, findings: Findings) -> None:
    """Call the tool and answer its questions. Raises Stopped if the call does not complete."""
    params: Result
    params = first = {"name": call.tool, "arguments": dict(call.arguments)}
    for answered in range(MAX_ROUNDS):
        send = lambda: connection.request(TOOLS_CALL, params)  # noqa: B023, E731 - called now
        result = _checked(connection, findings, "call", _hint(answered), send)
        if result.get("resultType") != "input_required":
            return _completed(call, result, answered, findings)
        requests = result.get("inputRequests") or {}
        responses = {key: sample_answer(each) for key, each in requests.items()}
        params = next_round(first, result, responses)
    raise findings.stop("call", f"{call.tool} still asks after {MAX_ROUNDS} rounds.")


def _completed(call: Call, result: Result, rounds: int, findings: Findings) -> None:
    if result.get("isError"):
        texts = [each.get("text", "") for each in result.get("content", [])]
        raise findings.stop("call", f"{call.tool} returned a tool error: {' '.join(texts)[:300]}")
    if result.get("resultType") == "task":
        findings.note("call", f"{call.tool} became a task in round {rounds + 1}. Its worker was not tried.")
    elif rounds:
        findings.ok("call", f"{call.tool} asked, was answered and completed in {rounds + 1} rounds.")
    else:
        findings.note("call", f"{call.tool} completed without a question, so states and KMS were not tried.")


def _hint(answered: int) -> str:
    if answered == 0:
        return (
            "The tool or its first question failed inside the function: KMS does not sign (log event "
            "state_unavailable), the task table does not answer (task_table_unavailable), or the tool "
            "raised (tool_raised)"
        )
    return (
        "The answer was not accepted: the function that continues cannot verify the state (log event "
        "state_refused), for example because its keys or its audience differ from those of the one that "
        "asked"
    )


def _checked(connection: Connection, findings: Findings, check: str, hint: str, run: Callable[[], T]) -> T:
    """Return the result of a request. Raises Stopped with the reason if there is none."""
    try:
        return run()
    except MCPError:
        raise _stop(connection, findings, check, hint) from None
    except ValueError as error:  # of pydantic
        raise findings.stop(check, f"The official client refuses the result: {error}.") from None


def _stop(connection: Connection, findings: Findings, check: str, hint: str) -> Stopped:
    response = connection.last
    if response is None:
        return findings.stop(check, f"{hint}.")
    error = error_of(response)
    is_fault = error is not None and error[0] == INTERNAL_ERROR
    return findings.stop(check, explain(response, hint) if is_fault else explain(response))


@dataclass(frozen=True)
class Settings:
    """What to check. `token_parameters` are those of the token request; None: the `resource` (RFC 8707).

    `issuer` is the authorization server that `client_id` is registered with.
    """

    url: str
    token: str | None = field(default=None, repr=False)
    client_id: str | None = None
    client_secret: str = field(default="", repr=False)
    issuer: str | None = None
    token_parameters: Mapping[str, str] | None = None
    iam: bool = False
    call: Call | None = None
    tls: ssl.SSLContext | None = None


def check(settings: Settings, findings: Findings) -> bool:
    """Run all checks until one stops them; return whether nothing is wrong."""
    try:
        _check(settings, findings)
    except Unreachable as error:
        findings.wrong("connection", str(error))
    except Stopped:
        pass
    return findings.passed


def _check(settings: Settings, findings: Findings) -> None:
    endpoint = _endpoint(settings, findings)
    named = authorization.check_without_token(
        endpoint if settings.client_id is None else replace(endpoint, token=""), findings
    )
    metadata: Mapping[str, Any] = {}
    if named is not None and not settings.iam:
        metadata = authorization.check_metadata(endpoint, named, findings)
    server = authorization.check_issuer(endpoint, metadata, findings)
    # The client's secret must not go to a server that another issuer's metadata name (RFC 8414 §3.3), nor
    # a token for another resource to this endpoint (RFC 9728 §3.3).
    if not findings.passed and (settings.client_id or not (settings.token or settings.iam)):
        return
    if settings.client_id is not None:
        # A client's credentials are only for the issuer that they are of (MCP: Authorization Server Binding).
        if metadata and server.get("issuer") != settings.issuer:
            raise findings.stop(
                "sign-in",
                "CLIENT_ID was not sent: the endpoint names the authorization server "
                f"{server.get('issuer')}, and ISSUER is {settings.issuer}. Correct ISSUER, or TokenIssuer.",
            )
        given = settings.token_parameters
        asked = {"resource": metadata.get("resource", settings.url)} if given is None else given
        credentials = (settings.client_id, settings.client_secret)
        endpoint = replace(endpoint, token=fetch_token(endpoint, server, *credentials, asked, findings))
    authorization.check_token(endpoint, findings)
    with endpoint.connect() as connection:
        _check_calls(connection, settings.call, findings)


def _check_calls(connection: Connection, call: Call | None, findings: Findings) -> None:
    tools = check_tools(connection, findings)
    if call is not None and call.tool not in tools:
        raise findings.stop("call", f"The endpoint has no tool {call.tool}: correct CALL.")
    check_owner(connection, call.tool if call else next(iter(tools)), findings)
    if call is None:
        findings.note("call", "No tool was called: pass CALL='TOOL {\"argument\": …}' with a tool that asks.")
    else:
        check_call(connection, call, findings)


def _endpoint(settings: Settings, findings: Findings) -> Endpoint:
    if not is_trustworthy(settings.url) or any(urlsplit(settings.url)[3:]):
        raise findings.stop(
            "url",
            "URL must be the output McpUrl of the stack: it begins with https:// (only a server on this "
            "computer may use http://), and has no query and no fragment.",
        )
    try:
        signature = AwsSignature(settings.url) if settings.iam else None
    except ValueError as error:
        raise findings.stop("url", str(error)) from error
    return Endpoint(settings.url, settings.token, signature, settings.tls)


SETTINGS = """\
Settings are variables of the environment, because other users of a computer can read command lines:
  URL=https://…/mcp   the endpoint
  TOKEN=…             an access token
  CLIENT_ID=… CLIENT_SECRET=…  fetch a token with the client credentials grant
  ISSUER=https://…    the authorization server that CLIENT_ID is registered with
  TOKEN_PARAMETERS=…  the form of the token request, as in 'scope=a b&audience=c'; default: resource=…
  IAM=1               sign requests with the AWS credentials of the environment (AuthMode iam)
  CALL='TOOL {…}'     a tool to call with these arguments; one that asks and has no side effects
  CA_BUNDLE=…         a file with certificates to trust instead of the system's"""


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Run the command; return its exit status."""
    argparse.ArgumentParser(
        prog="mcp-roundtrip smoke",
        description="Check a deployed endpoint from the outside.",
        epilog=SETTINGS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args(arguments)
    try:
        settings = read_settings(environment)
    except (ValueError, OSError) as error:
        print(f"error: {error}\n{SETTINGS}", file=sys.stderr)
        return 2
    findings = Findings(show=lambda finding: print(finding, flush=True))
    return 0 if check(settings, findings) else 1


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings in an environment. Raises ValueError with one sentence."""
    given = {name: environment.get(name, "").strip() for name in _NAMES}
    if not given["URL"]:
        raise ValueError("URL is missing.")
    if given["CLIENT_ID"] and not given["ISSUER"]:
        raise ValueError("CLIENT_ID needs ISSUER, the authorization server that it is registered with.")
    parameters = dict(parse_qsl(given["TOKEN_PARAMETERS"])) if given["TOKEN_PARAMETERS"] else None
    return Settings(
        given["URL"],
        token=given["TOKEN"] or None,
        client_id=given["CLIENT_ID"] or None,
        client_secret=given["CLIENT_SECRET"],
        issuer=given["ISSUER"] or None,
        token_parameters=parameters,
        iam=given["IAM"] == "1",
        call=_read_call(given["CALL"]),
        tls=ssl.create_default_context(cafile=given["CA_BUNDLE"]) if given["CA_BUNDLE"] else None,
    )


_NAMES = (
    "URL",
    "TOKEN",
    "CLIENT_ID",
    "CLIENT_SECRET",
    "ISSUER",
    "TOKEN_PARAMETERS",
    "IAM",
    "CALL",
    "CA_BUNDLE",
)


def _read_call(text: str) -> Call | None:
    if not text:
        return None
    tool, _, rest = text.partition(" ")
    try:
        arguments = json.loads(rest or "{}")
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise ValueError(
            'CALL must be the name of a tool and its arguments, as in \'get_weather {"location": "Tokyo"}\'.'
        )
    return Call(tool, arguments)
