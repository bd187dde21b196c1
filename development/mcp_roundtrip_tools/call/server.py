"""Requests to the endpoint whose failures end the command with one sentence, and signing in at make run."""

from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeGuard, TypeVar
from urllib.parse import urlencode, urlsplit

import httpx2
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, Field, ValidationError

from mcp_roundtrip.protocol.constants import TASKS_GET, TOOLS_CALL
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.call.errors import CallFailed, Status
from mcp_roundtrip_tools.client.connection import Connection, Result
from mcp_roundtrip_tools.client.http import (
    CALL_CLIENT,
    LOCAL_USER,
    LOOPBACK,
    Unreachable,
    challenge_parameter,
    error_of,
    explain,
    is_trustworthy,
    json_object,
    member,
    request,
)

FORM: Final = {"content-type": "application/x-www-form-urlencoded", "accept": "application/json"}


def local_token(url: str, refusal: httpx2.Response, user: str | None, scopes: str | None) -> tuple[str, str]:
    """Return a token of the local issuer and the name of its user, after a request without one was refused.

    `url` is that of the endpoint, which gets the token: another computer's endpoint could name the issuer and
    the endpoint of this one (RFC 9728 §7.3). Without `user`, the first user of the issuer signs in; without
    `scopes`, with the user's scopes. Raises CallFailed and Unreachable.
    """
    metadata = challenge_parameter(refusal, "resource_metadata")
    if metadata is None or (_is_local(metadata) and not _is_local(url)):
        raise _needs_token(None)
    resource = json_object(request("GET", metadata, {"accept": "application/json"}).text)
    issuers = resource.get("authorization_servers")
    issuer = issuers[0] if isinstance(issuers, list) and issuers else None
    if not _is_local(issuer) or not _is_same(url, resource.get("resource")):
        raise _needs_token(issuer)
    wanted = " " if scopes == "" else scopes  # a parameter without a value counts as omitted (RFC 6749 §3.2)
    form = {"grant_type": LOCAL_USER, "user": user, "scope": wanted, "resource": resource.get("resource")}
    body = urlencode({name: value for name, value in form.items() if value is not None}).encode()
    response = request("POST", f"{issuer.rstrip('/')}/token", FORM, body)
    token, name = member(response, "access_token"), member(response, "user")
    if not isinstance(token, str):
        reason = member(response, "error_description") or response.status_code
        raise CallFailed(Status.USAGE, f"The local issuer gives no token: {reason}.")
    return token, str(name)


def _is_local(url: Any) -> TypeGuard[str]:
    return isinstance(url, str) and is_trustworthy(url) and urlsplit(url).hostname in LOOPBACK


def _is_same(url: str, resource: Any) -> bool:
    """Return whether tokens for a resource, which may be the origin, are for an endpoint of this computer."""
    if not _is_local(url) or not _is_local(resource):
        return False
    one, other = urlsplit(url), urlsplit(resource)
    is_below = f"{one.path.rstrip('/')}/".startswith(f"{other.path.rstrip('/')}/")
    return (one.scheme, one.port) == (other.scheme, other.port) and is_below


def _needs_token(issuer: Any) -> CallFailed:
    named = f" of {issuer}" if issuer else ""
    return CallFailed(
        Status.USAGE, f"The endpoint needs an access token{named}. Pass it in the environment: TOKEN=…."
    )


Show = Callable[[str], None]
"""Shows a line beside the result."""


@dataclass
class LocalSignIn(httpx2.Auth):
    """Sends a token. A refused request without one is repeated with that of `user` at the local issuer."""

    url: str
    show: Show
    token: str | None
    user: str | None
    scopes: str | None
    requires_response_body = True

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Send a request, and repeat it after signing in. Raises CallFailed and Unreachable."""
        if self.token is not None:
            request.headers["authorization"] = f"Bearer {self.token}"
        response = yield request
        if response.status_code == 401 and self.token is None:
            self.token, name = local_token(self.url, response, self.user, self.scopes)
            self.show(f"Signed in as {name} at the local issuer.")
            request.headers["authorization"] = f"Bearer {self.token}"
            yield request

    def note_if_needless(self) -> None:
        """Say once that the server has not asked for a user."""
        if self.user is not None and self.token is None:
            self.show(f"The server requires no sign-in, so this call is not {self.user}'s.")
            self.user = None


T = TypeVar("T")


class _Task(BaseModel):
    """What is read of a task. The official client does not know the extension for tasks."""

    task_id: str = Field(alias="taskId")
    status: str
    input_requests: types.InputRequests | None = Field(None, alias="inputRequests")


_SHAPES: Final[dict[str, type[BaseModel]]] = {"task": _Task, "input_required": types.InputRequiredResult}
"""The results of tools/call, by their types."""


class McpServer(Connection):
    """A connection whose failures are CallFailed, with one sentence."""

    def __init__(
        self, url: str, show: Show, *, token: str | None, user: str | None, scopes: str | None
    ) -> None:
        self._show = show
        self._sign_in = LocalSignIn(url, show, token, user, scopes)
        super().__init__(
            url, CALL_CLIENT, self._sign_in, on_progress=self._show_progress, on_log=self._show_log
        )

    def request(self, method: str, params: Mapping[str, Any]) -> Result:
        """Send a request and return its result. Raises CallFailed."""
        result = super().request(method, params)
        if method in (TOOLS_CALL, TASKS_GET):
            kind = str(result.get("resultType"))
            shape = _Task if method == TASKS_GET else _SHAPES.get(kind, types.CallToolResult)
            try:
                shape.model_validate(result)
            except ValidationError as error:
                raise _malformed(error) from None
        return result

    def run(self, operation: Callable[[ClientSession], Awaitable[T]]) -> T:
        """Run an operation of the client. Raises CallFailed."""
        try:
            found = super().run(operation)
        except Unreachable as error:
            hint = " Start it with make run, in another terminal." if self._is_local else ""
            raise CallFailed(Status.UNREACHABLE, f"{error}{hint}") from None
        except ValidationError as error:
            raise _malformed(error) from None
        except MCPError as error:
            raise CallFailed(Status.ERROR, self._refusal(error)) from None
        self._sign_in.note_if_needless()
        return found

    async def _show_progress(self, progress: float, total: float | None, message: str | None) -> None:
        of = "" if total is None else f"/{total:g}"
        self._show(f"  {progress:g}{of} {message or ''}".rstrip())

    async def _show_log(self, params: types.LoggingMessageNotificationParams) -> None:
        self._show(f"  {params.level}: {params.data}")

    @property
    def _is_local(self) -> bool:
        return urlsplit(self.url).hostname in LOOPBACK

    def _refusal(self, error: MCPError) -> str:
        """Return what a response without a result means; of make run, what it says itself."""
        response = self.last
        if response is None:
            return f"{error}."
        found, message = error_of(response), member(response, "message")
        if self._is_local and found is not None and found[0] == INTERNAL_ERROR:
            separator = "\n" if "\n" in found[1] else " "
            return f"The server cannot answer ({INTERNAL_ERROR}):{separator}{found[1]}"
        if self._is_local and isinstance(message, str):
            hint = "; its terminal says why" if response.status_code >= 500 else ""
            return f"The server answers {response.status_code}: {message}{hint}."
        scopes = challenge_parameter(response, "scope") if self._is_local else None
        return explain(response) + (f' With the local issuer, pass SCOPES="{scopes}".' if scopes else "")


def _malformed(error: ValidationError) -> CallFailed:
    problem = error.errors()[0]
    place = ".".join(map(str, problem["loc"]))
    return CallFailed(Status.ERROR, f"A result of the server is malformed: {place}: {problem['msg']}.")
