"""One endpoint for all emulated AWS services, the value of AWS_ENDPOINT_URL.

Only programs that have the access key of this run may call them. The signature of a request names its service
(AWS Signature Version 4, "credential scope"), and the calls are recorded.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qs, unquote

from mcp_roundtrip_tools.run.http.browser_protection import refuse_web_page
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.observation.recorder import RunRecorder
from mcp_roundtrip_tools.run.observation.records import ServiceCall, caused_by, json_object
from mcp_roundtrip_tools.template.model import function_name

_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 .*?\bCredential=([^/,\s]+)/(?:[0-9]+/[a-z0-9-]+/([a-z0-9-]+)/)?")

Respond = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The AWS credentials that functions get in environment variables.

    Each execution environment has its own access key id, that of the run with the environment's number as a
    suffix, so that services know which environment calls them.
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
        access_key_id = variables.get("AWS_ACCESS_KEY_ID")
        if access_key_id is None:
            return None
        secret, token = variables.get("AWS_SECRET_ACCESS_KEY", ""), variables.get("AWS_SESSION_TOKEN", "")
        return cls(access_key_id, secret, token)

    def for_environment(self, suffix: str) -> Credentials:
        """Return the credentials of an execution environment. `suffix` consists of digits."""
        return replace(self, access_key_id=self.access_key_id + suffix)

    def environment_of(self, request: Request) -> str | None:
        """Return the suffix of the execution environment that signed a request; None if none did."""
        given = _access_key_id(request)
        return given.removeprefix(self.access_key_id) if self._accepts(given) else None

    def variables(self) -> dict[str, str]:
        """Return the environment variables that AWS SDKs read."""
        found = {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }
        return {name: value for name, value in found.items() if value}

    def guard(self, respond: Respond) -> Respond:
        """Return `respond` restricted to requests signed with this access key; others get 403.

        The signature is not verified, because the access key itself is secret.
        """

        def guarded(request: Request) -> Response:
            if self._accepts(_presigned_key_id(request)):
                return respond(request)
            return refuse_web_page(request) or self._refusal(request) or respond(request)

        return guarded

    def _accepts(self, given: str) -> bool:
        """Return whether this is the access key id of the run or of one of its execution environments."""
        key, suffix = given[: len(self.access_key_id)], given[len(self.access_key_id) :]
        is_known = hmac.compare_digest(key.encode(), self.access_key_id.encode())
        return is_known and (suffix == "" or (suffix.isascii() and suffix.isdigit()))

    def _refusal(self, request: Request) -> Response | None:
        found = _CREDENTIAL.match(request.header("authorization") or "")
        if found and self._accepts(found[1]):
            return None
        code = "UnrecognizedClientException" if found else "MissingAuthenticationTokenException"
        message = (
            "sign the request with the access key of this run: functions have it in AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
        )
        body = json.dumps({"__type": code, "message": message, "Message": message})
        return Response(
            403, (("content-type", "application/json"), ("x-amzn-errortype", code)), body.encode()
        )


def signing_scope(request: Request) -> str | None:
    """Return the name of the service for which a request is signed; None for a request without signature."""
    found = _CREDENTIAL.match(request.header("authorization") or "")
    if found:
        return found[2]
    return "s3" if _presigned_key_id(request) else None


def _access_key_id(request: Request) -> str:
    found = _CREDENTIAL.match(request.header("authorization") or "")
    return found[1] if found else _presigned_key_id(request)


def _presigned_key_id(request: Request) -> str:
    """Return the access key id of a presigned URL, or an empty text. Browsers may open such a URL."""
    query = parse_qs(request.target.partition("?")[2])
    return query.get("X-Amz-Credential", query.get("AWSAccessKeyId", [""]))[0].partition("/")[0]


@dataclass(frozen=True, slots=True)
class AwsService:
    """An emulated service. A request with a body over `max_body` bytes reaches it as `too_large`."""

    respond: Respond
    max_body: int


@dataclass(frozen=True, slots=True)
class AwsEndpoint:
    """Leads each request to the service that it is signed for; `others` answers for all other services.

    `services` are keyed by the service's name in signatures.
    """

    services: Mapping[str, AwsService]
    others: Respond

    @property
    def max_body(self) -> int:
        """The largest body that one of the services accepts, in bytes."""
        return max(service.max_body for service in self.services.values())

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        service = self.services.get(signing_scope(request) or "")
        if service is None:
            return self.others(request)
        if len(request.body) > service.max_body:
            return service.respond(replace(request, body=b"", too_large=True))
        return service.respond(request)


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
