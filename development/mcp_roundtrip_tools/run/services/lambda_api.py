"""Lambda's Invoke operation, with which functions invoke each other (AWS Lambda API reference, "Invoke")."""

import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote

from mcp_roundtrip.protocol.http import MAX_EVENT_BYTES
from mcp_roundtrip_tools.run.execution.runtime_api import InvokeRequest, RunFunction
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault, signature
from mcp_roundtrip_tools.template.model import LATEST, Function

MAX_EVENT_PAYLOAD = 1024 * 1024
"""The largest payload of an Event invocation, in bytes. Others may have MAX_EVENT_BYTES."""

NOT_EMULATED = (
    "{service} is not emulated. Lambda (Invoke), KMS, SQS (messages), DynamoDB and S3 are. Write a "
    "stand-in (Metadata.LocalRun of the template), or use the service itself with your credentials: "
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
