"""The official client, called from synchronous code, and the HTTP response to its last request."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

import httpx2
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.extension import advertise
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from pydantic import TypeAdapter

from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip_tools.client.http import TIMEOUT_S, unreachable

T = TypeVar("T")

Result = Mapping[str, Any]

Authorize = Callable[[httpx2.Request, httpx2.Response | None], Mapping[str, str] | None]
"""Returns the headers that authorize a request; after a refusal, those to send it again with, or None."""

Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]

_OBJECT: Final[TypeAdapter[Any]] = TypeAdapter(dict[str, Any])


async def _unused(*given: Any) -> Any:
    """Declare an ability. The caller of `request` answers what a result asks."""


_ABILITIES: Final[dict[str, Any]] = {
    "elicitation_callback": _unused,
    "sampling_callback": _unused,
    "list_roots_callback": _unused,
}


class _Request(types.Request[dict[str, Any], str]):
    """A request of MCP or of its extension for tasks."""


class _TaskRequest(_Request):
    name_param = "taskId"


class Connection:
    """A connection of the official client to an endpoint, for one thread at a time.

    `last` is the HTTP response to the last request. `authorize` is asked for the headers of each request.
    `on_progress` gets the progress of a request, `on_log` the level and the data of a log message.
    """

    def __init__(
        self,
        url: str,
        client: str,
        authorize: Authorize,
        *,
        tls: ssl.SSLContext | None = None,
        on_progress: Callable[[float, float | None, str | None], None] = lambda *given: None,
        on_log: Callable[[str, Any], None] = lambda *given: None,
    ) -> None:
        self.url = url
        self.last: httpx2.Response | None = None
        self._client = client
        self._authorize = authorize
        self._tls = tls
        self._on_progress = on_progress
        self._on_log = on_log
        self._failure: Exception | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Connection:
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        self._session = self._stack.enter_context(self._portal.wrap_async_context_manager(self._open()))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()  # the error is none of the client's

    def request(self, method: str, params: Mapping[str, Any]) -> Result:
        """Send a request and return its result.

        Raises MCPError, ValidationError for a result that is not of the specification, and Unreachable.
        """
        kind = _TaskRequest if method.startswith("tasks/") else _Request
        request = kind(method=method, params=dict(params))

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            self._on_progress(progress, total, message)

        return self.run(lambda session: session.send_request(request, _OBJECT, progress_callback=on_progress))

    def tools(self) -> dict[str, Result]:
        """Return the tools by name. Raises as `request` does."""
        found: dict[str, Result] = {}
        params: types.PaginatedRequestParams | None = None
        while params is None or params.cursor is not None:
            page = self.run(lambda session: session.list_tools(params=params))  # noqa: B023 - run now
            found |= {
                each.name: each.model_dump(mode="json", by_alias=True, exclude_none=True)
                for each in page.tools
            }
            params = types.PaginatedRequestParams(cursor=page.next_cursor)
        return found

    def run(self, operation: Callable[[ClientSession], Awaitable[T]]) -> T:
        """Run an operation of the client. Raises Unreachable, and what the operation raises."""
        running = self._portal.start_task_soon(operation, self._session)
        try:
            return running.result()
        except KeyboardInterrupt:
            running.cancel()
            raise
        except Exception:
            if self._failure is not None:
                raise self._failure from None
            raise

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ClientSession]:

        async def on_log(params: types.LoggingMessageNotificationParams) -> None:
            self._on_log(params.level, params.data)

        async with (
            _HttpClient(self.send, verify=self._tls or True, timeout=TIMEOUT_S) as http,
            Client(
                streamable_http_client(self.url, http_client=http),
                mode=PROTOCOL_VERSION,
                client_info=types.Implementation(name=self._client, version="1.0.0"),
                logging_callback=on_log,
                log_level="info",
                extensions=[advertise(TASKS_EXTENSION)],
                read_timeout_seconds=TIMEOUT_S + 5,
                **_ABILITIES,
            ) as client,
        ):
            yield client.session

    async def send(self, request: httpx2.Request, send: Send) -> httpx2.Response:
        """Send an authorized request. A failure becomes a response: the client would not survive it."""
        self._failure = None
        try:
            request.headers.update(self._authorize(request, None) or {})
            response = await send(request)
            if response.status_code == 401 and (headers := self._authorize(request, response)) is not None:
                request.headers.update(headers)
                response = await send(request)
        except httpx2.HTTPError as error:
            self._failure = unreachable(str(request.url), error)
        except Exception as error:
            self._failure = error
        else:
            self.last = response
            return response
        return httpx2.Response(500, request=request)


class _HttpClient(httpx2.AsyncClient):
    """Sends the requests of a connection, and reads each response whole: Lambda sends it at once.

    (A transport of our own would not use the proxy that the environment names.)
    """

    def __init__(
        self, send: Callable[[httpx2.Request, Send], Awaitable[httpx2.Response]], **options: Any
    ) -> None:
        super().__init__(**options)
        self._send_authorized = send

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        async def send(authorized: httpx2.Request) -> httpx2.Response:
            response = await super(_HttpClient, self).send(authorized, **options)
            await response.aread()
            return response

        return await self._send_authorized(request, send)
