"""The HTTP API in front of the functions, with the limits and error responses of API Gateway."""

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mcp_roundtrip.protocol.http import MAX_EVENT_BYTES
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip_tools.client.http import json_object
from mcp_roundtrip_tools.run.api_gateway.payload import MalformedResponse, decode_path, to_event, to_response
from mcp_roundtrip_tools.run.api_gateway.routing import Cors, match_route
from mcp_roundtrip_tools.run.execution.log_text import library_events, message_of, without_layer
from mcp_roundtrip_tools.run.execution.runtime_api import InvocationResult, InvokeRequest, RunFunction
from mcp_roundtrip_tools.run.http.browser_protection import came_through_proxy, refuse_cross_origin
from mcp_roundtrip_tools.run.http.messages import Request, Response, error_response, json_response
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import (
    HttpExchange,
    caused_by,
    member,
    walk,
)
from mcp_roundtrip_tools.template.model import Route

MAX_BODY = 10 * 1024 * 1024
"""The largest request body that API Gateway accepts, in bytes."""

INTEGRATION_TIMEOUT_S = 30.0
"""The seconds that API Gateway waits for a function. The function continues after that."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """Converts a request to an event, invokes the function of its route, and records the HTTP response.

    `routes`, `cors` and `left_out` (why functions do not run: 501) are called for every request: the template
    may change. Pages of origins that CORS does not list get 403. API Gateway does not do that, but with
    AuthMode none every page in the developer's browser could call tools.
    """

    routes: Callable[[], Sequence[Route]]
    invoke: RunFunction
    recorder: RunRecorder
    cors: Callable[[], Cors | None] = lambda: None
    left_out: Callable[[], Mapping[str, str]] = dict
    timeout_s: float = INTEGRATION_TIMEOUT_S
    _workers: ThreadPoolExecutor = field(
        init=False, default_factory=lambda: ThreadPoolExecutor(max_workers=256, thread_name_prefix="gateway")
    )

    def respond(self, request: Request) -> Response:
        """Answer one request and record it."""
        exchange = HttpExchange(str(uuid.uuid4()), self.recorder.now_ms(), request)
        self.recorder.begin_exchange(exchange)
        response = self._with_cors(request, exchange)
        response = replace(response, headers=(*response.headers, ("apigw-requestid", exchange.id)))
        self.recorder.end_exchange(exchange, response)
        return response

    def _with_cors(self, request: Request, exchange: HttpExchange) -> Response:
        cors = self.cors()
        if cors is not None and (preflight := cors.preflight(request)):
            return preflight
        allows = cors.allows if cors else lambda origin: False
        response = refuse_cross_origin(request, allows) or self._respond_to(request, exchange.id)
        response = explain_fault(request, response, exchange)
        return cors.add_to(response, request) if cors else response

    def _respond_to(self, request: Request, request_id: str) -> Response:
        found = match_route(self.routes(), request.method, decode_path(request.target))
        if found is None:
            return error_response(404, "Not Found")
        route, parameters = found
        if reason := self.left_out().get(route.function):
            return error_response(501, f"{route.key} is not served here: {reason}")
        event = to_event(request, route, parameters, request_id=request_id, now=time.time())
        payload = json.dumps(event, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if request.too_large or len(payload) > MAX_EVENT_BYTES:
            return error_response(413, "Request Entity Too Large")
        with caused_by("http", request_id):
            run = copy_context().run
        invocation = InvokeRequest(route.function, payload)
        future: Future[InvocationResult] = self._workers.submit(run, self.invoke, invocation)
        try:
            result = future.result(self.timeout_s)
        except TimeoutError:
            self.recorder.note(
                f"[{route.function}] no response within the {self.timeout_s:g} s of an HTTP API"
            )
            return error_response(503, "Service Unavailable")
        return self._from_result(route.function, result)

    def _from_result(self, function: str, result: InvocationResult) -> Response:
        if result.failed:
            return _FAILED
        try:
            return to_response(result.payload)
        except MalformedResponse as error:
            self.recorder.note(f"[{function}] malformed response: {error}")
            return _FAILED

    def close(self) -> None:
        """Stop the worker threads. Stop the functions first."""
        self._workers.shutdown(cancel_futures=True)


_FAILED = error_response(500, "Internal Server Error")

_EVENTS: Final = frozenset({"misconfigured", "definition_failed"})
"""The library's events for what only the author can correct."""


def explain_fault(request: Request, response: Response, exchange: HttpExchange) -> Response:
    """Return the response with the problem of the function instead of a neutral text.

    Requests through a proxy keep it: their callers may be on other computers.
    """
    is_fault = response.status == 500 or member(json_object(response.body), "error", "code") == INTERNAL_ERROR
    if not is_fault or came_through_proxy(request):
        return response
    problem = _problem(exchange)
    if problem is None:
        return response
    message = json_object(request.body)
    if message.get("jsonrpc") != "2.0" or "id" not in message:
        return error_response(response.status, problem)
    error: dict[str, Any] = {"code": INTERNAL_ERROR, "message": problem}
    return json_response(200, {"jsonrpc": "2.0", "id": message["id"], "error": error})


def _problem(exchange: HttpExchange) -> str | None:
    """Return why a function could not run, or what its definitions or settings lack."""
    refused = (each.error for each in walk(exchange) if each.init_failed)
    logged = (
        message_of(without_layer(str(event.get("exception", ""))))
        for event in library_events(exchange)
        if event["message"] in _EVENTS
    )
    return next((problem for problem in (*refused, *logged) if problem), None)
