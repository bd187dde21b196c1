"""Convert events in payload format 2.0 to the formats of other event sources.

Each result has the members of the example that AWS publishes.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qs

from mcp_roundtrip_tools.template.model import REGION

Event = dict[str, Any]

ACCOUNT: Final = "123456789012"
STAGE: Final = "prod"
API: Final = "abcdefghij"
URL_ID: Final = "abcdefghijklmnopqrstuvwxyz234567"

# The caller is anonymous: the members of its IAM identity are null.
_NO_IDENTITY: Final = dict.fromkeys(
    (
        *("accessKey", "accountId", "caller", "cognitoAuthenticationProvider", "cognitoAuthenticationType"),
        *("cognitoIdentityId", "cognitoIdentityPoolId", "user", "userArn"),
    )
)


def function_url(event: Mapping[str, Any]) -> Event:
    """Convert to a request of a function URL (Lambda developer guide, "Invoking Lambda function URLs")."""
    domain = f"{URL_ID}.lambda-url.{REGION}.on.aws"
    context = {
        **event["requestContext"],
        "accountId": "anonymous",
        "apiId": URL_ID,
        "authentication": None,
        "domainName": domain,
        "domainPrefix": URL_ID,
        "routeKey": "$default",
    }
    changed = {"routeKey": "$default", "requestContext": context, "pathParameters": None}
    return {**event, **changed, "headers": {**event["headers"], "host": domain}, "stageVariables": None}


def http_api_1_0(event: Mapping[str, Any]) -> Event:
    """Convert to payload format 1.0.

    Source: API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs".
    """
    context = event["requestContext"]
    staged = f"/{STAGE}{event['rawPath']}"
    proxied = _proxied(event, event["headers"])
    api = {"apiId": API, "authorizer": {"claims": None, "scopes": None}, "domainPrefix": API}
    named = {**api, "domainName": context["domainName"], "extendedRequestId": context["requestId"]}
    merged = {**proxied["requestContext"], **named, "path": staged, "resourceId": None}
    return {"version": "1.0", **proxied, "path": staged, "requestContext": merged}


def rest_api(event: Mapping[str, Any]) -> Event:
    """Convert to a request of a REST API, with the client's spelling of header names.

    Only `requestContext.path` has the stage. Source: API Gateway developer guide, "Lambda proxy integrations
    in API Gateway".
    """
    proxied = _proxied(event, {name.title(): value for name, value in event["headers"].items()})
    context = {"apiId": API, "path": f"/{STAGE}{event['rawPath']}", "resourceId": "123456"}
    return {**proxied, "requestContext": {**proxied["requestContext"], **context}}


def _proxied(event: Mapping[str, Any], headers: Mapping[str, str]) -> Event:
    context = event["requestContext"]
    http = context["http"]
    query = parse_qs(event["rawQueryString"], keep_blank_values=True)  # gateways decode it
    identity = {**_NO_IDENTITY, "sourceIp": http["sourceIp"], "userAgent": http["userAgent"]}
    return {
        "resource": event["rawPath"],
        "path": event["rawPath"],
        "httpMethod": http["method"],
        "headers": dict(headers),
        "multiValueHeaders": {name: [value] for name, value in headers.items()},
        "queryStringParameters": {name: values[-1] for name, values in query.items()} or None,
        "multiValueQueryStringParameters": query or None,
        "pathParameters": None,
        "stageVariables": None,
        "requestContext": {
            "accountId": ACCOUNT,
            "httpMethod": http["method"],
            "identity": identity,
            "protocol": http["protocol"],
            "requestId": context["requestId"],
            "requestTime": context["time"],
            "requestTimeEpoch": context["timeEpoch"],
            "resourcePath": event["rawPath"],
            "stage": STAGE,
        },
        "body": event.get("body"),
        "isBase64Encoded": event["isBase64Encoded"],
    }


def alb(event: Mapping[str, Any]) -> Event:
    """Convert to a load balancer's request (its user guide, "Receive events from the load balancer")."""
    group = f"arn:aws:elasticloadbalancing:{REGION}:{ACCOUNT}:targetgroup/mcp/49e9d65c45c6791a"
    return {
        "requestContext": {"elb": {"targetGroupArn": group}},
        "httpMethod": event["requestContext"]["http"]["method"],
        "path": event["rawPath"],
        "queryStringParameters": {name: values[-1] for name, values in _encoded_query(event).items()},
        "headers": dict(event["headers"]),
        "body": event.get("body", ""),
        "isBase64Encoded": event["isBase64Encoded"],
    }


def alb_multi_value(event: Mapping[str, Any]) -> Event:
    """Convert to a request with multi-value headers (the same guide, "Multi-value headers")."""
    single = alb(event)
    lists = {name: [value] for name, value in single.pop("headers").items()}
    del single["queryStringParameters"]
    return {**single, "multiValueQueryStringParameters": _encoded_query(event), "multiValueHeaders": lists}


def _encoded_query(event: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the parameters of the query, which a load balancer does not decode."""
    query: dict[str, list[str]] = {}
    for pair in filter(None, event["rawQueryString"].split("&")):
        name, _, value = pair.partition("=")
        query.setdefault(name, []).append(value)
    return query


FORMATS: Final[Mapping[str, Callable[[Mapping[str, Any]], Event]]] = {
    "function_url": function_url,
    "http_api_1_0": http_api_1_0,
    "rest_api": rest_api,
    "alb": alb,
    "alb_multi_value": alb_multi_value,
}
"""The conversions by the names of their adapters."""
