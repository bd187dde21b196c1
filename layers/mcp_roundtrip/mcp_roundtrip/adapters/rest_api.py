"""API Gateway REST APIs (Lambda proxy integration), and HTTP APIs with payload format 1.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.adapters import http_api
from mcp_roundtrip.adapters.endpoint_uri import api_uri
from mcp_roundtrip.adapters.event import (
    Adapter,
    Event,
    body,
    decoded_query,
    headers,
    members,
    multi_value_headers,
    text,
    without_stage,
)
from mcp_roundtrip.protocol.http import HttpRequest

SOURCE_LIMIT_MS: Final = 29_000
"""The default integration timeout ("Quotas for configuring and running a REST API").

Regional and private APIs can have a longer one; the event does not contain it.
"""

_IAM: Final = {
    "accessKey": "accessKey",
    "accountId": "accountId",
    "callerId": "caller",
    "userArn": "userArn",
    "userId": "user",
}
"""Member of `authorizer.iam` in payload format 2.0 -> member of `requestContext.identity`."""


def _parse_rest_api(event: Event) -> HttpRequest:
    # The path begins with the base path of a custom domain, and has no stage.
    resource = text(members(event, "requestContext"), "resourcePath")
    return _parse_request(event, SOURCE_LIMIT_MS, text(event, "path"), resource)


def _parse_http_api_1_0(event: Event) -> HttpRequest:
    context = members(event, "requestContext")
    path = without_stage(text(event, "path"), text(context, "stage"))
    # `resourceId` is the key of the route. In AWS's example it is null, and `resourcePath` the caller's path.
    return _parse_request(event, http_api.SOURCE_LIMIT_MS, path, text(context, "resourceId"))


def _parse_request(event: Event, source_limit_ms: int, path: str, route_key: str) -> HttpRequest:
    context = members(event, "requestContext")
    return HttpRequest(
        method=text(event, "httpMethod"),
        headers=multi_value_headers(event) or headers(event),  # `headers` has the last of several values
        body=body(event),
        authorizer=_authorizer(context),
        source_limit_ms=source_limit_ms,
        path=path,
        query=decoded_query(event),
        endpoint_uri=api_uri(context, route_key),
    )


def _authorizer(context: Event) -> Mapping[str, Any]:
    """Return the authorizer context as payload format 2.0 has it.

    Claims and the context of a Lambda authorizer are in the same object; only the latter has a principalId.
    """
    found: dict[str, Any] = {}
    given = {name: value for name, value in members(context, "authorizer").items() if value is not None}
    if isinstance(given.get("claims"), Mapping) and "principalId" not in given:
        found["jwt"] = given
    elif given:
        found["lambda"] = given
    identity = members(context, "identity")
    if identity.get("userArn") is not None:
        found["iam"] = {name: identity.get(member) for name, member in _IAM.items()}
        if identity.get("cognitoIdentityId") is not None:
            found["iam"]["cognitoIdentity"] = {"identityId": identity["cognitoIdentityId"]}
    return found


ADAPTERS: Final = {
    "rest_api": Adapter(_parse_rest_api, http_api.format_gateway_response),
    "http_api_1_0": Adapter(_parse_http_api_1_0, http_api.format_gateway_response),
}
