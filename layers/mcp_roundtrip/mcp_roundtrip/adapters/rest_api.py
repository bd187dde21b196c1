"""API Gateway REST API, Lambda proxy integration.

https://docs.aws.amazon.com/apigateway/latest/developerguide/set-up-lambda-proxy-integrations.html
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.adapters import http_api
from mcp_roundtrip.adapters.event import body, headers, members, multi_value_headers, text
from mcp_roundtrip.http import HttpRequest

SOURCE_LIMIT_MS: Final = 29_000
"""The default integration timeout ("Quotas for configuring and running a REST API"). Regional and private
APIs may have it raised; nothing in the event says so."""

_IAM: Final = {
    "accessKey": "accessKey",
    "accountId": "accountId",
    "callerId": "caller",
    "userArn": "userArn",
    "userId": "user",
}
"""Members of payload 2.0's `authorizer.iam` -> of `requestContext.identity`."""


def request(event: Mapping[str, Any], *, source_limit_ms: int = SOURCE_LIMIT_MS) -> HttpRequest:
    """The request; its path has no stage, and begins with a custom domain's base path."""
    return HttpRequest(
        method=text(event, "httpMethod"),
        # `headers` has the last of several values alone.
        headers=multi_value_headers(event) or headers(event),
        body=body(event),
        authorizer=_authorizer(members(event, "requestContext")),
        source_limit_ms=source_limit_ms,
        path=text(event, "path"),
    )


def _authorizer(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """The authorizer's context in payload 2.0's form.

    Here claims and a Lambda authorizer's context stand side by side; the latter has a principalId.
    """
    found: dict[str, Any] = {}
    given = {name: value for name, value in members(context, "authorizer").items() if value is not None}
    if isinstance(given.get("claims"), Mapping) and "principalId" not in given:
        found["jwt"] = given
    elif given:
        found["lambda"] = given
    identity = members(context, "identity")
    if identity.get("userArn") is not None:
        found["iam"] = {name: identity.get(here) for name, here in _IAM.items()}
        if identity.get("cognitoIdentityId") is not None:
            found["iam"]["cognitoIdentity"] = {"identityId": identity["cognitoIdentityId"]}
    return found


response = http_api.response
