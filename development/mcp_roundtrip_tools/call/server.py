"""Requests to the endpoint whose failures end the command with one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Timer
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_roundtrip.protocol.constants import TASKS_EXTENSION, TOOLS_LIST
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.call.errors import CallFailed, Status
from mcp_roundtrip_tools.call.results import MalformedResult, check_result
from mcp_roundtrip_tools.call.sign_in import local_token
from mcp_roundtrip_tools.client.challenges import challenge_of, challenge_parameter
from mcp_roundtrip_tools.client.exchange import LOOPBACK, Response, Unreachable
from mcp_roundtrip_tools.client.mcp_requests import Endpoint, correlation_of, error_of, result_of
from mcp_roundtrip_tools.client.refusals import explain

CAPABILITIES: Final[Mapping[str, Any]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
    "extensions": {TASKS_EXTENSION: {}},
}

WAITING_AFTER_S: Final = 3.0
"""Seconds without a response after which `notify` gets "waiting"."""

MAX_PAGES: Final = 1_000
"""Pages of a list that are read."""

Notify = Callable[[str, Mapping[str, Any]], None]
"""Takes the method and the params of a notification."""


class McpServer:
    """An endpoint. A refused request is repeated with a token of the local issuer, if that is its issuer.

    `notify` gets the notifications before each response, "signed_in", "not_signed_in" if a user was given and
    the endpoint requires none, and "waiting" for a slow response.
    """

    def __init__(self, endpoint: Endpoint, notify: Notify, *, user: str | None, scopes: str | None) -> None:
        self._endpoint = endpoint
        self._notify = notify
        self._user = user
        self._scopes = scopes

    def request(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Mapping[str, Any]:
        """Send a request and return its result. Raises CallFailed."""
        waiting = Timer(WAITING_AFTER_S, self._notify, ("waiting", {}))
        waiting.daemon = True
        waiting.start()
        try:
            response = self._endpoint.post(method, params, headers=headers)
            if response.status == 401 and self._endpoint.token is None:
                token, user = local_token(self._endpoint.url, response, self._user, self._scopes)
                self._endpoint = replace(self._endpoint, token=token)
                self._notify("signed_in", {"user": user})
                response = self._endpoint.post(method, params, headers=headers)
            elif self._user is not None and self._endpoint.token is None:
                self._notify("not_signed_in", {"user": self._user})
                self._user = None
        except Unreachable as error:
            raise CallFailed(Status.UNREACHABLE, self._unreachable(error)) from None
        finally:
            waiting.cancel()
        for message in response.messages()[:-1]:
            if isinstance(message, dict) and isinstance(params := message.get("params", {}), dict):
                self._notify(str(message.get("method")), params)
        result = result_of(response)
        if result is None:
            raise CallFailed(Status.ERROR, self._refusal(response))
        try:
            check_result(method, result)
        except MalformedResult as error:
            raise CallFailed(
                Status.ERROR, f"The server's result of {method} is malformed: {error}."
            ) from None
        return result

    def tools(self) -> dict[str, Mapping[str, Any]]:
        """Return the tools by name. Raises CallFailed."""
        found: dict[str, Mapping[str, Any]] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            result = self.request(TOOLS_LIST, {} if cursor is None else {"cursor": cursor})
            found |= {tool["name"]: tool for tool in result["tools"]}
            cursor = result.get("nextCursor")
            if cursor is None:
                break
        return found

    def _unreachable(self, error: Unreachable) -> str:
        hint = " Start it with make run, in another terminal." if self._is_local else ""
        return f"{error}{hint}"

    @property
    def _is_local(self) -> bool:
        return urlsplit(self._endpoint.url).hostname in LOOPBACK

    def _refusal(self, response: Response) -> str:
        """Return what a response without a result means; of make run, what it says itself."""
        message, error = response.member("message"), error_of(response)
        if self._is_local and error is not None and error[0] == INTERNAL_ERROR:
            separator = "\n" if "\n" in error[1] else " "
            return f"The server cannot answer ({INTERNAL_ERROR}):{separator}{error[1]}"
        if self._is_local and isinstance(message, str):
            hint = "; its terminal says why" if response.status >= 500 else ""
            return f"The server answers {response.status}: {message}{hint}."
        return _refusal(response)


def _refusal(response: Response) -> str:
    error = error_of(response)
    if response.status == 403 and (scopes := challenge_parameter(challenge_of(response), "scope")):
        return f"The token lacks scopes; the call needs all of: {scopes}. Pass SCOPES='{scopes}' (--scopes)."
    if response.status == 401:
        return "The endpoint refuses the token (401)." + correlation_of(response)
    if error is None:
        return explain(response) + correlation_of(response)
    code, message = error
    return f"The server refuses the request: {message.rstrip('.')} ({code}).{correlation_of(response)}"
