"""One endpoint for all emulated AWS services, the value of AWS_ENDPOINT_URL. It records their calls.

Programs need the run's access key. A signature names its service (Signature Version 4, "credential scope").
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from mcp_roundtrip.tasks.model import ENTRY, INPUT
from mcp_roundtrip_tools.client.http import json_object
from mcp_roundtrip_tools.run.http.browser_protection import refuse_web_page
from mcp_roundtrip_tools.run.http.messages import Request, Respond, Response
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import RecordedInvocation, ServiceCall, caused_by
from mcp_roundtrip_tools.template.model import function_name


class ServiceFault(Exception):
    """An error response: `code` is the AWS error code, such as `DisabledException`."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status

    def response(self, content_type: str = "application/json") -> Response:
        """Return the error response: clients of different services read different members of it."""
        error = {"__type": self.code, "message": self.message, "Message": self.message}
        headers = (("content-type", content_type), ("x-amzn-errortype", self.code))
        return Response(self.status, headers, json.dumps(error).encode())


def respond_json(operation: Callable[[], Mapping[str, Any] | None], version: str = "1.1") -> Response:
    """Return the response, or error response, of an operation, in a version of the AWS JSON protocol."""
    content_type = f"application/x-amz-json-{version}"
    try:
        answer = operation()
    except ServiceFault as fault:
        return fault.response(content_type)
    body = b"" if answer is None else json.dumps(answer).encode()
    return Response(200, (("content-type", content_type),), body)


_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 .*?\bCredential=([^/,\s]+)/(?:[0-9]+/[a-z0-9-]+/([a-z0-9-]+)/)?")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The AWS credentials that functions get in environment variables.

    Each environment's access key id has its number as a suffix, so that services know which one calls them.
    """

    access_key_id: str
    secret_access_key: str
    session_token: str

    @classmethod
    def random(cls) -> Credentials:
        """Return credentials that no other program can guess."""
        # SDKs accept any string; ASIA is the prefix of temporary keys.
        return cls(f"ASIA{secrets.token_hex(16).upper()}", secrets.token_hex(20), secrets.token_hex(20))

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Credentials | None:
        """Return the credentials in `variables`, or None. Functions sign with them if they are set."""
        if "AWS_ACCESS_KEY_ID" not in variables:
            return None
        names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
        return cls(*(variables.get(name, "") for name in names))

    def for_environment(self, suffix: str) -> Credentials:
        """Return the credentials of an execution environment. `suffix` consists of digits."""
        return replace(self, access_key_id=self.access_key_id + suffix)

    def variables(self) -> dict[str, str]:
        """Return the environment variables that AWS SDKs read."""
        found = {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }
        return {name: value for name, value in found.items() if value}

    def environment_of(self, request: Request) -> str | None:
        """Return the suffix of the environment that signed a request; None for a key of another run."""
        given = signature(request)[0] or ""
        key, suffix = given[: len(self.access_key_id)], given[len(self.access_key_id) :]
        is_known = hmac.compare_digest(key.encode(), self.access_key_id.encode())
        return suffix if is_known and (suffix == "" or (suffix.isascii() and suffix.isdigit())) else None

    def guard(self, respond: Respond) -> Respond:
        """Return `respond` restricted to requests signed with this access key; others get 403.

        The access key is secret, so the signature is not verified. A browser may open a presigned URL.
        """

        def guarded(request: Request) -> Response:
            if self.environment_of(request) is None:
                return refuse_web_page(request) or _refusal(is_signed=signature(request)[0] is not None)
            is_presigned = request.header("authorization") is None
            return (None if is_presigned else refuse_web_page(request)) or respond(request)

        return guarded


def _refusal(*, is_signed: bool) -> Response:
    code = "UnrecognizedClientException" if is_signed else "MissingAuthenticationTokenException"
    message = (
        "sign the request with the access key of this run: functions have it in AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
    )
    return ServiceFault(code, message, 403).response()


def signature(request: Request) -> tuple[str | None, str | None]:
    """Return the access key id and the service of a signature, in the header or in a presigned URL."""
    found = _CREDENTIAL.match(request.header("authorization") or "")
    if found:
        return found[1], found[2]
    key = _presigned_key_id(request)
    return (key, "s3") if key else (None, None)


def _presigned_key_id(request: Request) -> str:
    query = parse_qs(request.target.partition("?")[2])
    return query.get("X-Amz-Credential", query.get("AWSAccessKeyId", [""]))[0].partition("/")[0]


def lead_to_services(services: Mapping[str, Respond], others: Respond) -> Respond:
    """Return what leads a request to the service, by its name in signatures, that it is signed for."""
    return lambda request: services.get(signature(request)[1] or "", others)(request)


_INVOCATIONS: Final = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")

_PUTS: Final = frozenset({"DynamoDB_20120810.PutItem", "DynamoDB_20120810.TransactWriteItems"})

_S3_OPERATIONS: Final = {"GET": "Get", "PUT": "Put", "HEAD": "Head", "DELETE": "Delete", "POST": "Post"}


def record_calls(
    respond: Respond,
    recorder: RunRecorder,
    find_invocation: Callable[[Request], RecordedInvocation | None],
    key_name: Callable[[str], str],
) -> Respond:
    """Return `respond` that records the calls of the found invocations. `key_name` names a KMS key."""

    def recorded(request: Request) -> Response:
        invocation, started_ms = find_invocation(request), recorder.now_ms()
        with caused_by("invoke", None if invocation is None else invocation.id):
            response = respond(request)
        if invocation is not None:
            described, duration_ms = describe(request, key_name), recorder.now_ms() - started_ms
            written = _journal_keys(request) if response.status == 200 else ()
            call = ServiceCall(*described, response.status, started_ms, duration_ms, written)
            recorder.add_service_call(invocation, call)
        return response

    return recorded


def _journal_keys(request: Request) -> tuple[tuple[str, str], ...]:
    """Return the keys of the journal entries, and of the responses of clients, that a request puts."""
    if request.header("x-amz-target") not in _PUTS:
        return ()
    given = json_object(request.body)
    puts = [given, *(part.get("Put", {}) for part in given.get("TransactItems", ()))]
    items = [put.get("Item", {}) for put in puts]
    keys = [(item.get("pk", {}).get("S", ""), item.get("sk", {}).get("S", "")) for item in items]
    return tuple((pk, sort_key) for pk, sort_key in keys if sort_key.startswith((ENTRY, INPUT)))


def describe(request: Request, key_name: Callable[[str], str] = str) -> tuple[str, str, str]:
    """Return the service, the operation, and the name of the table, key, queue, bucket or function."""
    service = signature(request)[1] or "aws"
    path = request.target.partition("?")[0]
    if service == "lambda":
        found = _INVOCATIONS.fullmatch(path)
        return service, "Invoke", function_name(unquote(found[1])) if found else ""
    if service == "s3":
        verb = _S3_OPERATIONS.get(request.method, request.method)
        return service, verb + ("Object" if path.count("/") > 1 else "Bucket"), path.split("/")[1]
    operation = (request.header("x-amz-target") or "").rpartition(".")[2] or request.method
    given = json_object(request.body)
    match service:
        case "kms":
            return service, operation, key_name(str(given.get("KeyId", "")))
        case "dynamodb":
            return service, operation, _tables(given)
        case "sqs":
            return service, operation, str(given.get("QueueUrl", "")).rpartition("/")[2]
    return service, operation, str(given.get("logGroupName", ""))


def _tables(given: Mapping[str, Any]) -> str:
    """Return the table of a request; those of a transaction or a batch, without repetition."""
    items = given.get("TransactItems")
    parts = [part for item in items for part in item.values()] if isinstance(items, list) else []
    names = [str(part["TableName"]) for part in (given, *parts) if "TableName" in part]
    return ", ".join(dict.fromkeys([*names, *(given.get("RequestItems") or ())]))
