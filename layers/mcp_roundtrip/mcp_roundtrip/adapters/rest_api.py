"""API Gateway REST APIs (Lambda proxy integration), and HTTP APIs with payload format 1.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.adapters import http_api
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
from mcp_roundtrip.http import HttpRequest

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
    return _parse_request(event, SOURCE_LIMIT_MS, text(event, "path"))


def _parse_http_api_1_0(event: Event) -> HttpRequest:
    stage = text(members(event, "requestContext"), "stage")
    return _parse_request(event, http_api.SOURCE_LIMIT_MS, without_stage(text(event, "path"), stage))


def _parse_request(event: Event, source_limit_ms: int, path: str) -> HttpRequest:
    return HttpRequest(
        method=text(event, "httpMethod"),
        headers=multi_value_headers(event) or headers(event),  # `headers` has the last of several values
        body=body(event),
        authorizer=_authorizer(members(event, "requestContext")),
        source_limit_ms=source_limit_ms,
        path=path,
        query=decoded_query(event),
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
    "rest_api": Adapter(_parse_rest_api, http_api.format_response),
    "http_api_1_0": Adapter(_parse_http_api_1_0, http_api.format_response),
}
