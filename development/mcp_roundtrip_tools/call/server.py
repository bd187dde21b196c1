"""Requests to the endpoint whose failures end the command with one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Timer
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx2
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from mcp_roundtrip.protocol.constants import TASKS_GET, TOOLS_CALL
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.call.errors import CallFailed, Status
from mcp_roundtrip_tools.call.sign_in import local_token
from mcp_roundtrip_tools.client.connection import Connection, Result
from mcp_roundtrip_tools.client.http import Unreachable, member
from mcp_roundtrip_tools.client.local_issuer import CALL_CLIENT, LOOPBACK
from mcp_roundtrip_tools.client.refusals import challenge_parameter, correlation_of, error_of, explain

T = TypeVar("T")

WAITING_AFTER_S: Final = 3.0
"""Seconds without a response after which the user learns that the command waits."""

Show = Callable[[str], None]
"""Shows a line beside the result."""


class _CreatedTask(BaseModel):
    taskId: str


class _Task(BaseModel):
    """The members of a task that are shown. The official client does not know the extension."""

    status: str
    statusMessage: str | None = None
    pollIntervalMs: float | None = None
    inputRequests: dict[str, types.InputRequest] | None = None
    result: types.CallToolResult | None = None
    error: types.ErrorData | None = None


def _shape(method: str, result: Result) -> type[BaseModel] | None:
    """Return the model of the members that are read."""
    if method != TOOLS_CALL:
        return _Task if method == TASKS_GET else None
    kinds: dict[str, type[BaseModel]] = {"task": _CreatedTask, "input_required": types.InputRequiredResult}
    return kinds.get(str(result.get("resultType")), types.CallToolResult)


class McpServer:
    """An endpoint. A refused request is repeated with a token of the local issuer, if that is its issuer."""

    def __init__(
        self, url: str, show: Show, *, token: str | None, user: str | None, scopes: str | None
    ) -> None:
        self._url = url
        self._show = show
        self._token = token
        self._user = user
        self._scopes = scopes
        self._connection = Connection(
            url, CALL_CLIENT, self._authorize, on_progress=self._show_progress, on_log=self._show_log
        )

    def __enter__(self) -> McpServer:
        self._connection.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._connection.__exit__(*error)

    def tools(self) -> dict[str, Result]:
        """Return the tools by name. Raises CallFailed."""
        return self._run("tools/list", self._connection.tools)

    def request(self, method: str, params: Mapping[str, Any]) -> Result:
        """Send a request and return its result. Raises CallFailed."""

        def send() -> Result:
            result = self._connection.request(method, params)
            if shape := _shape(method, result):
                shape.model_validate(result)
            return result

        return self._run(method, send)

    def _run(self, method: str, operation: Callable[[], T]) -> T:
        waiting = Timer(WAITING_AFTER_S, self._show, ("  waiting for the server …",))
        waiting.daemon = True
        waiting.start()
        try:
            found = operation()
        except Unreachable as error:
            hint = " Start it with make run, in another terminal." if self._is_local else ""
            raise CallFailed(Status.UNREACHABLE, f"{error}{hint}") from None
        except ValidationError as error:
            problem = error.errors()[0]
            place = ".".join(map(str, problem["loc"]))
            text = f"The server's result of {method} is malformed: {place}: {problem['msg']}."
            raise CallFailed(Status.ERROR, text) from None
        except MCPError as error:
            raise CallFailed(Status.ERROR, self._refusal(error)) from None
        finally:
            waiting.cancel()
        if self._user is not None and self._token is None:
            self._show(f"The server requires no sign-in, so this call is not {self._user}'s.")
            self._user = None
        return found

    def _authorize(self, request: httpx2.Request, refusal: httpx2.Response | None) -> dict[str, str] | None:
        if refusal is not None:
            if self._token is not None:
                return None
            self._token, user = local_token(self._url, refusal, self._user, self._scopes)
            self._show(f"Signed in as {user} at the local issuer.")
        return {} if self._token is None else {"authorization": f"Bearer {self._token}"}

    def _show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        of = "" if total is None else f"/{total:g}"
        self._show(f"  {progress:g}{of} {message or ''}".rstrip())

    def _show_log(self, level: str, data: Any) -> None:
        self._show(f"  {level}: {data}")

    @property
    def _is_local(self) -> bool:
        return urlsplit(self._url).hostname in LOOPBACK

    def _refusal(self, error: MCPError) -> str:
        """Return what a response without a result means; of make run, what it says itself."""
        response = self._connection.last
        if response is None:
            return f"{error}."
        found, message = error_of(response), member(response, "message")
        if self._is_local and found is not None and found[0] == INTERNAL_ERROR:
            separator = "\n" if "\n" in found[1] else " "
            return f"The server cannot answer ({INTERNAL_ERROR}):{separator}{found[1]}"
        if self._is_local and isinstance(message, str):
            hint = "; its terminal says why" if response.status_code >= 500 else ""
            return f"The server answers {response.status_code}: {message}{hint}."
        if response.status_code == 403 and (scopes := challenge_parameter(response, "scope")):
            return (
                f"The token lacks scopes; the call needs all of: {scopes}. Pass SCOPES='{scopes}' (--scopes)."
            )
        if response.status_code == 401:
            return f"The endpoint refuses the token (401).{correlation_of(response)}"
        if found is None:
            return explain(response)
        code, text = found
        return f"The server refuses the request: {text.rstrip('.')} ({code}).{correlation_of(response)}"
