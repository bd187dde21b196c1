"""Record the calls of functions to the emulated AWS services."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.causes import caused_by
from mcp_roundtrip_tools.run.observation.messages import json_object
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import ServiceCall
from mcp_roundtrip_tools.run.services.credentials import Credentials, Respond, signing_scope
from mcp_roundtrip_tools.template.model import function_name

_INVOCATIONS: Final = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")

_S3_OPERATIONS: Final = {"GET": "Get", "PUT": "Put", "HEAD": "Head", "DELETE": "Delete", "POST": "Post"}


@dataclass(frozen=True, slots=True)
class ObservedServices:
    """Restricts services to the functions of this run, and records their calls.

    `find_invocation` returns the id of the invocation that an execution environment serves, by the suffix of
    its access key. `key_name` returns a readable name of a KMS key.
    """

    credentials: Credentials
    recorder: RunRecorder
    find_invocation: Callable[[str], str | None]
    key_name: Callable[[str], str]

    def guard(self, respond: Respond) -> Respond:
        """Return `respond` restricted to signed requests, which are recorded."""
        return self.credentials.guard(lambda request: self._observe(respond, request))

    def _observe(self, respond: Respond, request: Request) -> Response:
        suffix = self.credentials.environment_of(request)
        invocation_id = None if suffix is None else self.find_invocation(suffix)
        started_ms = self.recorder.now_ms()
        with caused_by("invoke", invocation_id):
            response = respond(request)
        if invocation_id is not None:
            service, operation, detail = describe(request, self.key_name)
            duration_ms = self.recorder.now_ms() - started_ms
            call = ServiceCall(service, operation, detail, response.status, started_ms, duration_ms)
            self.recorder.add_service_call(invocation_id, call)
        return response


def describe(request: Request, key_name: Callable[[str], str] = str) -> tuple[str, str, str]:
    """Return the service, the operation, and the name of the table, key, queue, bucket or function."""
    service = signing_scope(request) or "aws"
    path = request.target.partition("?")[0]
    operation = (request.header("x-amz-target") or "").rpartition(".")[2]
    match service:
        case "lambda":
            return service, "Invoke", _invoked_function(path)
        case "s3":
            return service, _s3_operation(request.method, path), path.split("/")[1]
        case "kms":
            return service, operation, key_name(_member(request.body, "KeyId"))
        case "dynamodb":
            return service, operation, _table(request.body)
        case "logs":
            return service, operation, _member(request.body, "logGroupName")
        case "sqs":
            return service, operation, _member(request.body, "QueueUrl").rpartition("/")[2]
    return service, operation or request.method, ""


def _invoked_function(path: str) -> str:
    found = _INVOCATIONS.fullmatch(path)
    return function_name(unquote(found[1])) if found else ""


def _s3_operation(method: str, path: str) -> str:
    return _S3_OPERATIONS.get(method, method) + ("Object" if path.count("/") > 1 else "Bucket")


def _table(body: bytes) -> str:
    """Return the table of a request; those of a transaction or a batch, without repetition."""
    document = json_object(body)
    if "TableName" in document:
        return str(document["TableName"])
    if isinstance(batch := document.get("RequestItems"), dict):
        return ", ".join(batch)
    items = document.get("TransactItems")
    parts = [part for item in items for part in item.values()] if isinstance(items, list) else []
    return ", ".join(dict.fromkeys(str(part["TableName"]) for part in parts if "TableName" in part))


def _member(body: bytes, name: str) -> str:
    return str(json_object(body).get(name, ""))
