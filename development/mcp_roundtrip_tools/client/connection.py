"""The official client, called from synchronous code, and the HTTP response to its last request."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from typing import Annotated, Any, Final, Self, TypeVar

import httpx2
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.client import Client
from mcp.client.extension import advertise
from mcp.client.session import ClientSession, LoggingFnT
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import ProgressFnT
from pydantic import AfterValidator, TypeAdapter

from mcp_roundtrip.protocol.constants import PROTOCOL_VERSION, TASKS_EXTENSION
from mcp_roundtrip_tools.client.http import TIMEOUT_S, unreachable, uses_environment

T = TypeVar("T")

Result = Mapping[str, Any]


def _check_type(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result. Raises ValueError for another type than those of MCP and its extension for tasks."""
    if result.get("resultType", "complete") not in ("complete", "input_required", "task"):
        raise ValueError("the result has an unknown resultType")  # basic/index "ResultType"
    return result


_RESULT: Final[TypeAdapter[Any]] = TypeAdapter(Annotated[dict[str, Any], AfterValidator(_check_type)])


def next_round(first: Result, result: Result, responses: Result) -> Result:
    """Return the next round's params, with state and responses if there are any (basic/patterns/mrtr)."""
    state = {"requestState": result["requestState"]} if "requestState" in result else {}
    return {**first, **state, **({"inputResponses": responses} if responses else {})}


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
    """A connection of the official client, for one thread at a time. The callbacks get progress and logs."""

    def __init__(
        self,
        url: str,
        client: str,
        auth: httpx2.Auth | None,
        *,
        tls: ssl.SSLContext | None = None,
        on_progress: ProgressFnT | None = None,
        on_log: LoggingFnT | None = None,
    ) -> None:
        self.url = url
        self._client = client
        self._on_progress = on_progress
        self._on_log = on_log
        self._http = _HttpClient(
            auth=auth, verify=tls or True, timeout=TIMEOUT_S, trust_env=uses_environment(url)
        )
        self._stack = ExitStack()

    @property
    def last(self) -> httpx2.Response | None:
        """The HTTP response to the last request."""
        return self._http.last

    def __enter__(self) -> Self:
        self._portal: BlockingPortal = self._stack.enter_context(start_blocking_portal())
        self._session = self._stack.enter_context(self._portal.wrap_async_context_manager(self._open()))
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack.close()  # the error is none of the client's

    def request(self, method: str, params: Mapping[str, Any]) -> Result:
        """Return the result of a request. Raises MCPError, Unreachable, ValidationError if it is wrong."""
        kind = _TaskRequest if method.startswith("tasks/") else _Request
        request, on_progress = kind(method=method, params=dict(params)), self._on_progress
        return self.run(lambda session: session.send_request(request, _RESULT, progress_callback=on_progress))

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
            if self._http.failure is not None:
                raise self._http.failure from None
            raise

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[ClientSession]:
        async with (
            self._http as http,
            Client(
                streamable_http_client(self.url, http_client=http),
                mode=PROTOCOL_VERSION,
                client_info=types.Implementation(name=self._client, version="1.0.0"),
                logging_callback=self._on_log,
                log_level="info",
                extensions=[advertise(TASKS_EXTENSION)],
                read_timeout_seconds=TIMEOUT_S + 5,
                **_ABILITIES,
            ) as client,
        ):
            yield client.session


class _HttpClient(httpx2.AsyncClient):
    """Records the last response, or why there is none. (A transport of our own would use no proxy.)"""

    last: httpx2.Response | None = None
    failure: Exception | None = None

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request. A failure becomes a response: the client would not survive it."""
        self.failure = None
        try:
            response = await super().send(request, **options)
            await response.aread()  # Lambda sends it at once
        except httpx2.HTTPError as error:
            self.failure = unreachable(str(request.url), error)
        except Exception as error:  # of signing in
            self.failure = error
        else:
            self.last = response
            return response
        return httpx2.Response(500, request=request)
