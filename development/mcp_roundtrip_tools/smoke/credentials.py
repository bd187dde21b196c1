"""The credentials of the smoke test: a token, a signature, and why an endpoint may refuse a token."""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

import httpx2
import jwt

from mcp_roundtrip_tools.client.http import Unreachable, member, request
from mcp_roundtrip_tools.smoke.endpoint import Endpoint
from mcp_roundtrip_tools.smoke.findings import Findings


def fetch_token(
    endpoint: Endpoint,
    server: Mapping[str, Any],
    client_id: str,
    client_secret: str,
    parameters: Mapping[str, str],
    findings: Findings,
) -> str:
    """Return an access token from the authorization server with this metadata. Raises Stopped."""
    url = server.get("token_endpoint")
    if not isinstance(url, str):
        raise findings.stop(
            "sign-in", "CLIENT_ID needs an authorization server with a token_endpoint; pass TOKEN=…."
        )
    basic = httpx2.BasicAuth(quote(client_id, ""), quote(client_secret, ""))
    headers = {"content-type": "application/x-www-form-urlencoded"}
    form = urlencode({"grant_type": "client_credentials", **parameters}).encode()
    try:
        response = request("POST", url, headers, form, tls=endpoint.tls, auth=basic)
    except Unreachable as error:
        raise findings.stop("sign-in", str(error)) from error
    token = member(response, "access_token")
    if not isinstance(token, str):
        reason = member(response, "error_description") or member(response, "error") or response.status_code
        raise findings.stop("sign-in", f"{url} gives no token for CLIENT_ID: {reason}.")
    findings.ok("sign-in", f"{url} gave a token.")
    return token


_SIGNED: Final = ("content-type", "mcp-")
"""The beginnings of the names of headers that a signature covers."""


class AwsSignature(httpx2.Auth):
    """Signs requests with the AWS credentials of the environment. Raises ValueError with one sentence."""

    requires_request_body = True

    def __init__(self, url: str) -> None:
        import boto3  # only AuthMode iam needs it
        from botocore.auth import SigV4Auth

        named = re.search(r"\.execute-api\.([a-z0-9-]+)\.", url)
        region = named[1] if named else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        credentials = boto3.Session().get_credentials()
        if not region:
            raise ValueError("IAM=1 needs AWS_REGION, because the host of URL does not name the Region.")
        if credentials is None:
            raise ValueError("IAM=1 needs AWS credentials in the environment.")
        self._signer = SigV4Auth(credentials, "execute-api", region)

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        from botocore.awsrequest import AWSRequest

        signed = {name: value for name, value in request.headers.items() if name.startswith(_SIGNED)}
        unsigned = AWSRequest(request.method, str(request.url), data=request.content, headers=signed)
        self._signer.add_auth(unsigned)
        request.headers.update(dict(unsigned.headers.items()))
        yield request


LEEWAY_S = 30


def claims_of(token: str) -> Mapping[str, Any] | None:
    """Return the claims of a JWT, or None if the token is not one."""
    try:
        claims: Mapping[str, Any] = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError:
        return None
    return claims


def refusal_reasons(
    claims: Mapping[str, Any], now: float, resource: str | None, issuers: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each reason that an endpoint may have to refuse a token.

    `now` is in seconds since the epoch. `resource` and `issuers` are of the endpoint's metadata.
    """
    expires, begins = claims.get("exp"), claims.get("nbf")
    if isinstance(expires, (int, float)) and expires <= now:
        yield f"The token expired at {_time(expires)}."
    if isinstance(begins, (int, float)) and begins > now + LEEWAY_S:
        yield f"The token is not valid before {_time(begins)}."
    if issuers and claims.get("iss") not in issuers:
        yield (
            f"The token is from the issuer {claims.get('iss')!r}, the endpoint accepts {_listed(issuers)} "
            "(TokenIssuer); a trailing slash makes a difference."
        )
    audiences = claims.get("aud")
    given = audiences if isinstance(audiences, list) else [audiences]
    if resource is not None and resource not in given:
        yield (
            f"The token is for the audience {_listed(given)}, the endpoint is {resource!r}: request the "
            "token for this resource, or set TokenAudience."
        )
    if {"nonce", "at_hash", "c_hash", "s_hash"} & claims.keys():
        yield "The token looks like an ID token; the endpoint needs an access token."
    if "cnf" in claims:
        yield "The token is bound to a key (cnf); disable DPoP and mTLS for this endpoint."
    if not claims.get("sub"):
        yield "The token has no sub, so it identifies no caller."


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(repr(each) for each in values)
