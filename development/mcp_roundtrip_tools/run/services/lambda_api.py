"""Lambda's Invoke operation, with which functions invoke each other, and asynchronous invocations.

Sources: AWS Lambda API reference, "Invoke"; developer guide, "How Lambda handles errors and retries with
asynchronous invocation". An invocation fails if the function raises an exception or times out, or if its
process exits. Failed asynchronous ones are repeated, and at last sent to a dead-letter queue.
"""

import json
import threading
import time
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol
from urllib.parse import parse_qs, unquote

from mcp_roundtrip.protocol.http import MAX_EVENT_BYTES
from mcp_roundtrip_tools.run.execution.runtime_api import InvokeRequest, RunFunction
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.records import caused_by, current_cause
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault, signature
from mcp_roundtrip_tools.template.model import LATEST, Function

MAX_EVENT_PAYLOAD = 1024 * 1024
"""The largest payload of an Event invocation, in bytes. Others may have MAX_EVENT_BYTES."""

NOT_EMULATED = (
    "{service} is not emulated. Lambda (Invoke), KMS, SQS (messages), DynamoDB and S3 are. To use another "
    "endpoint, or the service itself with your credentials: "
    'make run VARIABLES="AWS_ENDPOINT_URL_<SERVICE>=https://... AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY", '
    "with <SERVICE> as the AWS SDKs name it, such as SSM or SECRETS_MANAGER"
)
"""The message for other services. A variable without a value is copied from the environment of `make`."""


@dataclass(frozen=True, slots=True)
class LambdaApi:
    """Answers Invoke. `functions` is called for every request, because the template may change.

    `invoke_later` accepts asynchronous invocations; by default they do not run. `left_out` has why other
    functions do not run. `log` gets a line for these, and for services that are not emulated.
    """

    functions: Callable[[], Mapping[str, Function]]
    invoke: RunFunction
    invoke_later: Callable[[InvokeRequest], None] = lambda invocation: None
    log: Callable[[str], None] = lambda line: None
    left_out: Callable[[], Mapping[str, str]] = dict

    def respond(self, request: Request) -> Response:
        try:
            return self._reply(request)
        except ServiceFault as fault:
            return fault.response()

    def _reply(self, request: Request) -> Response:
        path, _, query = request.target.partition("?")
        match request.method, path.split("/"):
            case "POST", ["", "2015-03-31", "functions", name, "invocations"]:
                return self._invocation(request, unquote(name), parse_qs(query).get("Qualifier", [None])[0])
        # A service that is not emulated: no request leaves this computer.
        service = signature(request)[1] or "aws"
        text = NOT_EMULATED.format(service=service)
        self.log(f"[{service}] {text}")
        raise ServiceFault("NotImplemented", text, 501)

    def _invocation(self, request: Request, reference: str, qualifier: str | None) -> Response:
        name, qualifier = self._find(reference, qualifier)
        encoded = request.header("x-amz-client-context")
        client_context = json.dumps(json.loads(b64decode(encoded))) if encoded else None
        kind = request.header("x-amz-invocation-type") or "RequestResponse"
        payload = _payload(request, MAX_EVENT_PAYLOAD if kind == "Event" else MAX_EVENT_BYTES)
        invocation = InvokeRequest(name, payload, qualifier, client_context)
        request_id = ("x-amzn-RequestId", invocation.request_id)
        if kind == "Event":
            self.invoke_later(invocation)
            return Response(202, (request_id,))
        result = self.invoke(invocation)
        failed = (("X-Amz-Function-Error", "Unhandled"),) if result.failed else ()
        headers = (("Content-Type", "application/json"), ("X-Amz-Executed-Version", LATEST), *failed)
        return Response(200, (*headers, request_id), result.payload)

    def _find(self, reference: str, qualifier: str | None) -> tuple[str, str | None]:
        # A name, a partial ARN (account:function:name) or a whole one, each with or without a qualifier.
        name, _, suffix = reference.rpartition("function:")[2].partition(":")
        qualifier = suffix or qualifier
        if reason := self.left_out().get(name):
            self.log(f"[{name}] does not run here: {reason}")
            raise ServiceFault("NotImplemented", f"{name} does not run here: {reason}", 501)
        function = self.functions().get(name)
        if function is None or qualifier not in (None, LATEST, function.alias):
            raise ServiceFault("ResourceNotFoundException", f"Function not found: {reference}", 404)
        return name, qualifier


def _payload(request: Request, limit: int) -> bytes:
    if request.too_large or len(request.body) > limit:
        text = f"Request must be smaller than {limit} bytes for the InvokeFunction operation"
        raise ServiceFault("RequestTooLargeException", text, 413)
    return request.body or b"{}"


class Timers(Protocol):
    """A clock with timers. Tests replace it by one that they advance."""

    def now_s(self) -> float:
        """Return the time in epoch seconds."""

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        """Call `action` in another thread at that time, or at once if it has passed."""


class RealTimers:
    """The clock of this computer. `close` cancels the calls that have not begun."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[threading.Timer] = set()
        self._closed = False

    def now_s(self) -> float:
        return time.time()

    def call_at(self, epoch_s: float, action: Callable[[], object]) -> None:
        def call() -> None:
            with self._lock:
                self._waiting.discard(timer)
            action()

        timer = threading.Timer(max(0.0, epoch_s - time.time()), call)
        timer.daemon = True
        with self._lock:
            if not self._closed:
                self._waiting.add(timer)
                timer.start()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            for timer in self._waiting:
                timer.cancel()


RETRY_DELAYS_S: Final = (60.0, 120.0)
"""The seconds between a failed attempt and the next one. Lambda repeats an invocation at most twice."""


@dataclass(frozen=True, slots=True)
class AsyncInvocations:
    """Runs accepted invocations, and repeats those that fail, after delays times `retry_delay_scale`.

    `send` puts a message into the queue with an ARN, and returns False if it does not exist.
    """

    functions: Callable[[], Mapping[str, Function]]
    run: RunFunction
    send: Callable[[str, str], bool]
    timers: Timers
    log: Callable[[str], None]
    retry_delay_scale: float = 1.0

    def accept(self, invocation: InvokeRequest) -> None:
        """Queue an invocation."""
        self.deliver(invocation, self.timers.now_s(), caller=current_cause().caller)

    def deliver(
        self, invocation: InvokeRequest, epoch_s: float, *, attempts: int = 0, caller: str | None = None
    ) -> None:
        """Attempt an invocation at that time. Lambda sometimes delivers an event twice.

        `attempts` have failed before. `caller` is the id of the invocation that requested it.
        """
        self.timers.call_at(epoch_s, lambda: self._attempt(invocation, attempts, caller))

    def _attempt(self, invocation: InvokeRequest, attempts: int, caller: str | None) -> None:
        function = self.functions().get(invocation.function)
        if function is None:  # the template has changed
            return
        with caused_by("retry" if attempts else "async", caller):
            result = self.run(invocation)
        if not result.failed:
            return
        if attempts >= min(function.max_retries, len(RETRY_DELAYS_S)):
            self._discard(function, invocation, attempts + 1)
            return
        delay_s = RETRY_DELAYS_S[attempts] * self.retry_delay_scale
        self.log(f"[{function.name}] retry of {invocation.request_id} in {delay_s:g} s")
        at_s = self.timers.now_s() + delay_s
        self.deliver(invocation, at_s, attempts=attempts + 1, caller=caller)

    def _discard(self, function: Function, invocation: InvokeRequest, attempts: int) -> None:
        self.log(f"[{function.name}] {invocation.request_id} discarded after {attempts} attempts")
        queue, event = function.dead_letter, invocation.payload.decode()
        if queue is not None and not self.send(queue, event):
            self.log(f"[{function.name}] {queue} is not emulated: {event}")
