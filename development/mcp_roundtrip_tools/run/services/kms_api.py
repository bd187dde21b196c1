"""Answer requests to a `FakeKms` in the AWS JSON 1.1 protocol, from any AWS SDK."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from typing import Any

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.kms import MEMBERS, OPERATIONS, FakeKms
from mcp_roundtrip_tools.run.services.kms_key import KmsFault

MAX_BODY = 1_048_576
"""The largest request body in bytes."""


def respond(kms: FakeKms, request: Request) -> Response:
    """Answer one HTTP request, also with an error response."""
    try:
        if request.too_large:
            raise KmsFault("SerializationException", f"a body has at most {MAX_BODY} bytes")
        if not (request.header("authorization") or "").startswith("AWS4-HMAC-SHA256 "):
            raise KmsFault("MissingAuthenticationTokenException", "the request is not signed")
        return _reply(200, call_operation(kms, request.header("x-amz-target") or "", request.body))
    except KmsFault as fault:
        return _reply(400, {"__type": fault.code, "message": fault.message})


def _reply(status: int, document: dict[str, Any]) -> Response:
    headers = (("Content-Type", "application/x-amz-json-1.1"), ("x-amzn-RequestId", str(uuid.uuid4())))
    return Response(status, headers, json.dumps(document).encode())


def call_operation(kms: FakeKms, target: str, body: bytes) -> dict[str, Any]:
    """Call the operation that X-Amz-Target names and return its result. Raises KmsFault."""
    service, _, operation = target.partition(".")
    if service != "TrentService" or operation not in OPERATIONS:
        raise KmsFault("UnknownOperationException", f"{target!r} is not emulated")
    try:
        members = json.loads(body or b"{}")
    except ValueError:
        raise KmsFault("SerializationException", "the body is not JSON") from None
    if not isinstance(members, dict):
        raise KmsFault("SerializationException", "the body is not a JSON object")
    result: dict[str, Any] = getattr(kms, operation)(
        **{name: _decode_member(name, members[name]) for name in members}
    )
    return {name: _encode_value(value) for name, value in result.items()}


def _decode_member(name: str, value: Any) -> Any:
    if MEMBERS.get(name) is not bytes or not isinstance(value, str):
        return value
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise KmsFault("SerializationException", f"{name} is not Base64") from None


def _encode_value(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value
