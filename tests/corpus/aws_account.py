"""An AWS account that answers requests in this process. It records each call, and can fail the next.

KMS is the strict fake of `make run`. Lambda and SQS keep what was dispatched until somebody
takes it, and Lambda runs functions of the case. CloudWatch Logs stores nothing: the calls are the record. The
issuer of access tokens is here, too.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from http.client import HTTPMessage
from math import inf
from typing import Any
from urllib.parse import unquote, urlsplit

from cryptography.hazmat.primitives.asymmetric import ec

from corpus.dynamodb import Table, spelled_out
from mcp_roundtrip.aws.client_interface import NoResponse, ServiceResponse
from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault, respond_json
from mcp_roundtrip_tools.run.services.kms import call_operation
from support.fake_kms import FailingKms

REGION, ACCOUNT = "eu-west-1", "000000000000"
TABLE = "corpus-tasks"
SIGNING_KEY, MAC_KEY = "corpus-signing", "corpus-mac"
MAC_SECRET, AUDIT_SECRET = bytes(range(32)), bytes(range(32, 64))
URL = "http://127.0.0.1:8000"
ARN = f"arn:aws:kms:{REGION}:{ACCOUNT}:key/"


@cache
def private_key(number: int) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(0x5EED_0000 + number, ec.SECP256R1())


@dataclass
class Fault:
    """How calls of an operation fail."""

    service: str
    operation: str
    code: str = "InternalServerError"
    status: int = 500
    times: float = inf
    """The calls that fail. Without a number, it is an outage, which lasts until the account recovers."""
    skip: int = 0
    """The calls before them that succeed."""
    failed: int = 0


@dataclass
class Account:
    """The resources of a case, and the calls that it received."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    functions: dict[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    invocations: list[tuple[str, Any]] = field(default_factory=list)
    """Asynchronous invocations: the function and its event."""
    messages: list[tuple[str, float, str]] = field(default_factory=list)
    """The messages of queues: the URL of the queue, the delay in seconds, the body."""
    key_set: Any = None
    """The JWKS of the issuer."""
    table: Table = field(default_factory=lambda: Table(TABLE))
    is_cut_off: bool = False
    """Whether the process that calls was killed."""
    kms: FailingKms = field(default_factory=lambda: FailingKms(region=REGION))

    def __post_init__(self) -> None:
        self.kms.import_key(private_key(1), key_id=SIGNING_KEY)
        self.kms.import_key(MAC_SECRET, key_id=MAC_KEY)
        self.kms.import_key(AUDIT_SECRET, key_id="corpus-audit")
        self.kms.CreateAlias(AliasName="alias/corpus-audit", TargetKeyId="corpus-audit")

    def fail(self, service: str, operation: str, *options: Any, **more: Any) -> None:
        """Let the next calls of an operation fail. The options are those of Fault."""
        self.faults.append(Fault(service, operation, *options, **more))

    def recover(self) -> None:
        """Let all calls succeed again. A fault that too few calls have met is a mistake of the case."""
        for fault in self.faults:
            enough = 1 if fault.times == inf else fault.times
            assert fault.failed >= enough, f"too few calls for {fault}"
        self.faults.clear()

    def rows(self) -> list[dict[str, Any]]:
        return list(self.table.items.values())

    def request(
        self, method: str, target: str, headers: Iterable[tuple[str, str]], body: bytes | None, *_: float
    ) -> ServiceResponse:
        """Answer a request as `Connections.request` of the layer does, without a socket."""
        answer = self._respond(target, {name.lower(): value for name, value in headers}, body or b"")
        if answer is None:
            raise NoResponse("ConnectionClosedError")
        found = HTTPMessage()
        for name, value in answer.headers:
            found[name] = value
        return ServiceResponse(answer.status, found, answer.body)

    def fetch(self, url: str, timeout_s: float) -> bytes:
        """Return the issuer's keys, as `fetch` of the layer does."""
        self.calls.append({"issuer": urlsplit(url).path})
        return json.dumps(self.key_set).encode()

    def _respond(self, target: str, headers: Mapping[str, str], body: bytes) -> Response | None:
        """Answer a request; None for no answer."""
        if self.is_cut_off:
            return None
        service, operation, parameters = _read(target, headers, body)
        shown = spelled_out(parameters) if service == "dynamodb" else parameters
        self.calls.append({"aws": f"{service}:{operation}", **shown})
        fault = self._next_fault(service, operation)
        if fault is not None:
            self.calls[-1]["fails"] = fault.code
            return ServiceFault(fault.code, "the corpus asked for it", fault.status).response()
        answer = self._answer(service, operation, parameters, body)
        if answer.status >= 400:
            self.calls[-1]["fails"] = json.loads(answer.body).get("__type", answer.status)
        return answer

    def _next_fault(self, service: str, operation: str) -> Fault | None:
        for fault in self.faults:
            if (fault.service, fault.operation) == (service, operation):
                if fault.skip:
                    fault.skip -= 1
                    return None
                if fault.failed < fault.times:
                    fault.failed += 1
                    return fault
        return None

    def _answer(self, service: str, operation: str, parameters: dict[str, Any], body: bytes) -> Response:
        match service:
            case "kms":
                return respond_json(partial(call_operation, self.kms, f"TrentService.{operation}", body))
            case "dynamodb":
                return respond_json(partial(self.table.call, operation, json.loads(body)))
            case "lambda":
                return self._invoke(parameters)
            case "sqs" if operation == "SendMessage":
                message = json.loads(body)
                self.messages.append((message["QueueUrl"], message["DelaySeconds"], message["MessageBody"]))
        return Response(200, body=b"{}")

    def _invoke(self, parameters: dict[str, Any]) -> Response:
        function, event = parameters["FunctionName"], parameters["Payload"]
        if parameters.get("InvocationType") == "Event":
            self.invocations.append((function, event))
            return Response(202)
        answer = self.functions[function](event, parameters.get("ClientContext"))
        return Response(200, body=json.dumps(answer).encode())


def _read(target: str, headers: Mapping[str, str], body: bytes) -> tuple[str, str, dict[str, Any]]:
    if target.startswith("/2015-03-31/functions/"):
        parameters: dict[str, Any] = {"FunctionName": unquote(target.split("/")[3])}
        if "x-amz-invocation-type" in headers:
            parameters["InvocationType"] = headers["x-amz-invocation-type"]
        if "x-amz-client-context" in headers:
            parameters["ClientContext"] = json.loads(b64decode(headers["x-amz-client-context"]))
        return "lambda", "Invoke", {**parameters, "Payload": json.loads(body)}
    name, _, operation = headers["x-amz-target"].partition(".")
    service = {"TrentService": "kms", "Logs_20140328": "logs", "AmazonSQS": "sqs"}.get(name, "dynamodb")
    return service, operation, json.loads(body)
