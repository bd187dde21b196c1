"""Events from each event source, and the responses that it gets."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip_tools.events import Event, post
from mcp_roundtrip_tools.run.api_gateway.payload import to_event
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.template.model import Route
from support.event_formats import FORMATS

HTTP_SOURCES = ("http_api", *FORMATS)
GATEWAYS = ("http_api_1_0", "rest_api")
"""The sources with multi-value headers and a flat authorizer context."""


def sent_by(source: str, body: Mapping[str, Any], path: str = "/mcp") -> Event:
    return converted(source, post(path, body))


def event_of(source: str, request: HttpRequest, now: float) -> Event:
    """Return the event of a request, whose authorizer context is in payload format 2.0."""
    path = request.path or "/mcp"
    body = request.body or b""
    sent = Request(
        request.method,
        f"{path}?{urlencode(request.query)}" if request.query else path,
        tuple({"host": "mcp.test", **request.headers}.items()),
        body.encode() if isinstance(body, str) else body,
    )
    event = to_event(sent, Route(request.method, path, "F"), {}, request_id="event-1", now=now)
    return converted(source, event, request.authorizer)


def converted(source: str, event: Event, authorizer: Mapping[str, Any] | None = None) -> Event:
    """Return an event in payload format 2.0 as a source sends it, with this authorizer context."""
    found = FORMATS[source](event) if source in FORMATS else event
    if not authorizer:
        return found
    members = flat_context(authorizer) if source in GATEWAYS else {"authorizer": dict(authorizer)}
    return with_context(found, **members)


def flat_context(authorizer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a request context in payload format 1.0."""
    [(kind, given)] = authorizer.items()
    if kind == "iam":
        user = str(given["userId"]).removeprefix("AROA").partition(":")[0]
        arn = given.get("userArn", f"arn:aws:sts::{given['accountId']}:assumed-role/{user}/session")
        return {"identity": {"accountId": given["accountId"], "user": given["userId"], "userArn": arn}}
    return {"authorizer": given if kind == "jwt" else {"principalId": "any", **given}}


def response_of(answer: Mapping[str, Any]) -> HttpResponse:
    """Return the response in a function's answer to an event."""
    lists = answer.get("multiValueHeaders", {})
    found = answer.get("headers") or {name: value for name, [value] in lists.items()}
    return HttpResponse(answer["statusCode"], answer.get("body", ""), found)


def with_header(event: Event, name: str, *values: str) -> Event:
    """Return the event with further values of a header. `headers` has the last one."""
    changed = dict(event)
    if "headers" in event:
        changed["headers"] = {**event["headers"], name: values[-1]}
    if "multiValueHeaders" in event:
        lists = event["multiValueHeaders"]
        changed["multiValueHeaders"] = {**lists, name: [*lists.get(name, []), *values]}
    return changed


def with_context(event: Event, **members: Any) -> Event:
    """Return the event with these members in its request context."""
    return {**event, "requestContext": {**event["requestContext"], **members}}


def with_method(event: Event, method: str) -> Event:
    """Return the event of a request with this method and no body."""
    changed = {**event, "body": None}
    if "http" in event["requestContext"]:
        return with_context(changed, http={**event["requestContext"]["http"], "method": method})
    return {**changed, "httpMethod": method}
