"""Convert HTTP requests to events in payload format 2.0, and function responses to HTTP responses.

Source: API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs in API Gateway".
"""

import binascii
import json
import re
import time
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.template.model import ACCOUNT, Route

API_ID = "local"
_TEXT = {"application/json", "application/javascript", "application/xml"}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OWN_HEADERS = {
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "upgrade",
}


class MalformedResponse(ValueError):
    """The response of a function does not conform to payload format 2.0."""


def decode_path(target: str) -> str:
    """Return the percent-decoded path of a request target, as in `rawPath`."""
    return unquote(target.partition("?")[0])


def to_event(
    request: Request, route: Route, path_parameters: Mapping[str, str], *, request_id: str, now: float
) -> dict[str, Any]:
    """Return the event for a request; `now` is in epoch seconds."""
    headers = _joined((name.lower(), value) for name, value in request.headers)
    cookies = headers.pop("cookie", "")
    host = headers.get("host", "localhost")
    headers.setdefault("x-forwarded-for", request.source_ip)
    headers.setdefault("x-forwarded-port", host.rpartition(":")[2] if ":" in host else "80")
    headers.setdefault("x-forwarded-proto", "http")
    domain = host.rpartition(":")[0] or host
    query = request.target.partition("?")[2]
    path = decode_path(request.target)
    optional = {
        "cookies": [cookie.strip() for cookie in cookies.split(";") if cookie.strip()],
        "queryStringParameters": _joined(parse_qsl(query, keep_blank_values=True)),
        "pathParameters": dict(path_parameters),
    }
    return {
        "version": "2.0",
        "routeKey": route.key,
        "rawPath": path,
        "rawQueryString": query,
        "headers": headers,
        **{name: value for name, value in optional.items() if value},
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": API_ID,
            "domainName": domain,
            "domainPrefix": domain.partition(".")[0],
            "http": {
                "method": request.method,
                "path": path,
                "protocol": request.protocol,
                "sourceIp": request.source_ip,
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": request_id,
            "routeKey": route.key,
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)),
            "timeEpoch": int(now * 1000),
        },
        **_body(request.body, headers.get("content-type", "")),
    }


def to_response(payload: bytes) -> Response:
    """Return the HTTP response for the JSON that a function returned. Raises MalformedResponse.

    Without `statusCode` it is the body of a 200. `multiValueHeaders` (format 1.0) is ignored, as by the API.
    """
    try:
        value = json.loads(payload)
    except ValueError:
        raise MalformedResponse("not JSON") from None
    if not isinstance(value, dict) or "statusCode" not in value:
        body = value if isinstance(value, str) else json.dumps(value)
        return Response(200, (("content-type", "application/json"),), body.encode("utf-8", "surrogatepass"))
    headers = _headers(value.get("headers"))
    if not any(name == "content-type" for name, _ in headers):
        headers.append(("content-type", "text/plain; charset=utf-8"))
    cookies = value.get("cookies") or []
    if not isinstance(cookies, list):
        raise MalformedResponse("cookies is not an array")
    headers += [("set-cookie", _header_value(cookie)) for cookie in cookies]
    return Response(_status(value["statusCode"]), tuple(headers), _bytes(value))


def _joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    joined: dict[str, str] = {}
    for name, value in pairs:
        joined[name] = f"{joined[name]},{value}" if name in joined else value
    return joined


def _body(body: bytes, content_type: str) -> dict[str, Any]:
    if not body:
        return {"isBase64Encoded": False}
    media_type = content_type.partition(";")[0].strip().lower()
    # HTTP APIs encode every other body: forms, `+json` types and bodies without a type.
    if media_type in _TEXT or media_type.startswith("text/"):
        try:
            return {"body": body.decode(), "isBase64Encoded": False}
        except UnicodeDecodeError:
            pass
    return {"body": b64encode(body).decode(), "isBase64Encoded": True}


def _headers(value: Any) -> list[tuple[str, str]]:
    if value is None:
        return []
    if not isinstance(value, dict):
        raise MalformedResponse("headers is not an object")
    if not all(_TOKEN.fullmatch(name) for name in value):
        raise MalformedResponse("a header name is not a token")
    headers = [(name.lower(), _header_value(item)) for name, item in value.items()]
    return [(name, item) for name, item in headers if name not in _OWN_HEADERS]


def _header_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, (str, int, float)) or any(character in str(value) for character in "\r\n\0"):
        raise MalformedResponse("the value of a header or cookie is not a single line of text")
    # The server writes headers as Latin-1.
    return str(value).encode("utf-8", "surrogatepass").decode("latin-1")


def _status(value: Any) -> int:
    try:
        status = int(value)
    except (TypeError, ValueError):
        status = 0
    if isinstance(value, (bool, float)) or not 200 <= status <= 599:
        raise MalformedResponse("statusCode is not an HTTP status")
    return status


def _bytes(value: Mapping[str, Any]) -> bytes:
    body = value.get("body")
    if body is None:
        return b""
    if not isinstance(body, str):
        raise MalformedResponse("body is not a string")
    if value.get("isBase64Encoded") is not True:
        return body.encode("utf-8", "surrogatepass")
    try:
        return b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        raise MalformedResponse("body is not Base64") from None
