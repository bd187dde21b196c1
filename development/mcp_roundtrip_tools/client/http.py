"""HTTP requests whose failures are sentences, and what a response without a result means."""

import json
import re
import ssl
from collections.abc import Generator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")
CALL_CLIENT: Final = "mcp-roundtrip-call"
"""The client id of `make call`, and its name in requests."""

LOCAL_USER: Final = "urn:mcp-roundtrip:grant-type:local-user"
"""The grant type of `make call`: an access token for `user` and `scope`, or for the first user."""

TIMEOUT_S: Final = 35.0
"""API Gateway answers within 30 seconds."""


def is_trustworthy(url: str) -> bool:
    """Return whether a request can be sent to a URL and no other computer can read it: https, or loopback."""
    try:
        sent, port = httpx2.URL(url), urlsplit(url).port  # each refuses some that the other takes
    except (ValueError, httpx2.InvalidURL):
        return False
    is_local = sent.host in LOOPBACK or sent.host.endswith(".localhost")  # RFC 6761, 6.3
    is_usable = bool(sent.host) and port != 0
    return is_usable and (sent.scheme == "https" or (sent.scheme == "http" and is_local))


def uses_environment(url: str) -> bool:
    """Return whether requests use the proxy and certificates of the environment: not to this computer."""
    parts = urlsplit(url)
    return parts.scheme == "https" or parts.hostname not in LOOPBACK


class BearerToken(httpx2.Auth):
    """Sends an access token."""

    def __init__(self, token: str) -> None:
        self._value = f"Bearer {token}"

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        request.headers["authorization"] = self._value
        yield request


class Unreachable(Exception):
    """No HTTP response arrived. The message is one sentence."""


def request(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    auth: httpx2.Auth | None = None,
    timeout_s: float = TIMEOUT_S,
) -> httpx2.Response:
    """Send a request, follow no redirect, and return the response of any status. Raises Unreachable."""
    # A server names further URLs in its metadata; requests to them carry the secret of a client.
    if not is_trustworthy(url):
        raise Unreachable(f"No request is sent to {url}, which does not begin with https://.")
    try:
        with httpx2.Client(verify=tls or True, timeout=timeout_s, trust_env=uses_environment(url)) as client:
            return client.request(method, url, headers=headers, content=body, auth=auth)
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        raise unreachable(url, error) from error


def unreachable(url: str, error: BaseException) -> Unreachable:
    """Return a sentence on a request that got no response."""
    host = urlsplit(url).netloc
    if isinstance(error, httpx2.TimeoutException):
        return Unreachable(f"{host} did not answer: a firewall drops the packets, or the host is down.")
    cause: BaseException = error
    while inner := (cause.exceptions[0] if isinstance(cause, BaseExceptionGroup) else cause.__cause__):
        cause = inner
    return Unreachable(f"{host} is unreachable: {str(cause).rstrip('.') or type(cause).__name__}.")


def member(response: httpx2.Response, name: str) -> Any:
    """Return a member of the JSON object in a body, of the last message if it is a stream; or None."""
    return last_message(response.text).get(name)


def json_object(text: bytes | str) -> dict[str, Any]:
    """Return the JSON object that a body or a line consists of; an empty one if there is none."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def last_message(body: str) -> dict[str, Any]:
    """Return the JSON object of a body, in an event stream the last one; an empty one if there is none."""
    messages = re.findall("^data:(.*)", body, re.MULTILINE)
    return json_object(messages[-1] if messages else body)


RENAMED: Final = ("x-amzn-remapped-www-authenticate", "x-mcp-challenge")
"""The names that API Gateway gives to the header of a challenge."""

_CORRELATION_HEADERS: Final = ("apigw-requestid", "x-amzn-requestid", "x-amz-apigw-id")

_BY_STATUS: Final = {
    404: "There is no route at this URL (404): its path is wrong, or lacks the stage of the API. Use the "
    "output McpUrl of the stack, which ends in /mcp; with DomainName, API Gateway's own host has no routes.",
    405: "This URL does not accept POST (405): it is not the MCP endpoint.",
    413: "The endpoint refuses the size of the request (413).",
    429: "The endpoint throttles (429): ThrottlingRate, ThrottlingBurst, a limit at the edge, or open tasks.",
    500: "API Gateway could not use the function's response (500): the function crashed, or API Gateway may "
    "not invoke it. Read the stack's log group.",
    501: "The function at this URL does not run here (501).",
    502: "The function failed before it could answer (502): an import error, or a layer that was built for "
    "another Python or architecture. Read the stack's log group.",
    503: "The function did not answer (503): it timed out, or Lambda throttled it.",
    504: "The function did not answer in time (504).",
    401: "The endpoint refuses the token (401).",
    403: "The endpoint refuses the request (403): AuthMode iam needs a signed request (IAM=1) of a principal "
    "with execute-api:Invoke; an authorizer or a web ACL may also refuse it.",
}


def challenge_parameter(response: httpx2.Response, name: str) -> str | None:
    """Return a parameter of a challenge (RFC 6750 §3, RFC 9728 §5.1), or None."""
    headers = (response.headers.get(each) for each in ("www-authenticate", *RENAMED))
    found = re.search(rf'{name}="([^"]*)"', next(filter(None, headers), ""))
    return found[1] if found else None


def error_of(response: httpx2.Response) -> tuple[int, str] | None:
    """Return the code and the message of a JSON-RPC error, or None."""
    error = member(response, "error")
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        return error["code"], str(error.get("message", ""))
    return None


def correlation_of(response: httpx2.Response) -> str:
    """Return where to search in the log, as the end of a sentence; empty without an id."""
    ids = [response.headers[name] for name in _CORRELATION_HEADERS if name in response.headers]
    return f" Search the log for {ids[0]}." if ids else ""


def explain(response: httpx2.Response, refusal: str = "The server refuses the request") -> str:
    """Return one sentence on a response without a result. `refusal` begins that on a JSON-RPC error."""
    status, message = response.status_code, member(response, "message")
    if status == 403 and (scopes := challenge_parameter(response, "scope")):
        return f"The token lacks scopes; the call needs all of: {scopes}."
    if status != 401 and (error := error_of(response)) is not None:
        return f"{refusal}: {error[0]}, {error[1].rstrip('.')}.{correlation_of(response)}"
    if 300 <= status < 400:
        return (
            f"The endpoint redirects to {response.headers.get('location', 'nowhere')}; clients do not follow."
        )
    kind = response.headers.get("content-type", "no content-type")
    text = _BY_STATUS.get(status, f"The URL answers {status} with {kind}: this is not an MCP endpoint.")
    said = f" It says: {message}." if isinstance(message, str) and message else ""
    where = "" if status == 404 else correlation_of(response)  # no log has such a request
    return text + said + where
