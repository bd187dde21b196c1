"""The Lambda Runtime API of a process ("Using the Lambda runtime API for custom runtimes", 2018-06-01)."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from uuid import uuid4

from mcp_roundtrip_tools.run.http.browser_protection import refuse_web_page
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.template.model import function_arn

MAX_RESPONSE = 6 * 1024 * 1024 + 100
"""The largest response in bytes: 6291556, as in Lambda's error message."""

_ROOT = "/2018-06-01/runtime/"
_JSON = (("Content-Type", "application/json"),)


@dataclass(frozen=True, slots=True)
class InvokeRequest:
    """An invocation of a function. `payload` is the event in JSON, and `client_context` is ASCII JSON."""

    function: str
    payload: bytes
    qualifier: str | None = None
    client_context: str | None = None
    request_id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True, slots=True)
class Ready:
    """The runtime has imported the function and requested its first event."""


@dataclass(frozen=True, slots=True)
class InvocationResult:
    """The result of an invocation. `payload` is JSON: the function's response, or the error if `failed`."""

    payload: bytes
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """Why an invocation has no result, such as the exit of the process: the type and message of its error."""

    type: str
    message: str

    def result(self) -> InvocationResult:
        """Return the result that the caller gets."""
        error = {"errorType": self.type, "errorMessage": self.message}
        return InvocationResult(json.dumps(error).encode(), failed=True)


Report = Ready | InvocationResult | Fault

RunFunction = Callable[[InvokeRequest], InvocationResult]
"""Runs a function in one of its processes: `LocalApp.run`, or `LocalApp.run_nested` for functions."""


class RuntimeApi:
    """Delivers invocations from `pending`, and puts into `reports` what becomes of them, and Ready before.

    An invocation has its deadline in epoch milliseconds. `address` is the value of AWS_LAMBDA_RUNTIME_API.
    """

    def __init__(self) -> None:
        self.pending: SimpleQueue[tuple[InvokeRequest, int] | None] = SimpleQueue()
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self._ready = False
        self._current: str | None = None
        self._server = HttpServer(self._respond, max_body=MAX_RESPONSE).start()
        self.address = f"127.0.0.1:{self._server.port}"

    def close(self) -> None:
        """Stop listening, and end the request in which the runtime waits for its next event."""
        self.pending.put(None)
        self._server.close()

    def _respond(self, request: Request) -> Response:
        if refusal := refuse_web_page(request):  # runtime clients do not sign requests
            return refusal
        match request.method, request.target.removeprefix(_ROOT).split("/"):
            case "GET", ["invocation", "next"]:
                return self._next()
            case "POST", ["invocation", request_id, "response" | "error" as kind]:
                return self._finish(request_id, kind, request)
            case "POST", ["init", "error"]:
                self.reports.put(InvocationResult(request.body, failed=True))
                return _status(202)
        return _status(404)

    def _next(self) -> Response:
        if not self._ready:
            self._ready = True
            self.reports.put(Ready())
        pending = self.pending.get()
        if pending is None:
            return _status(410)
        invocation, deadline_ms = pending
        self._current = invocation.request_id
        return Response(200, _next_headers(invocation, deadline_ms), invocation.payload)

    def _finish(self, request_id: str, kind: str, request: Request) -> Response:
        if request_id != self._current:
            return _status(400)
        self._current = None
        if request.too_large:
            text = f"Response payload size exceeded maximum allowed payload size ({MAX_RESPONSE} bytes)."
            self.reports.put(Fault("Function.ResponseSizeTooLarge", text))
            return _status(413)
        self.reports.put(InvocationResult(request.body, failed=kind == "error"))
        return _status(202)


def _next_headers(invocation: InvokeRequest, deadline_ms: int) -> tuple[tuple[str, str], ...]:
    headers = [
        ("Content-Type", "application/json"),
        ("Lambda-Runtime-Aws-Request-Id", invocation.request_id),
        ("Lambda-Runtime-Deadline-Ms", str(deadline_ms)),
        ("Lambda-Runtime-Invoked-Function-Arn", function_arn(invocation.function, invocation.qualifier)),
        ("Lambda-Runtime-Trace-Id", _trace_id(invocation.request_id)),
    ]
    if invocation.client_context is not None:
        headers.append(("Lambda-Runtime-Client-Context", invocation.client_context))
    return tuple(headers)


def _trace_id(request_id: str) -> str:
    digits = request_id.replace("-", "")
    return f"Root=1-{digits[:8]}-{digits[8:]};Sampled=0"


def _status(status: int) -> Response:
    return Response(status, _JSON, json.dumps({"status": status}).encode())
