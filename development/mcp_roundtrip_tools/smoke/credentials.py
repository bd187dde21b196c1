"""Credentials of a machine: a token for client credentials (RFC 6749 §4.4), or AWS's Signature Version 4."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from mcp_roundtrip_tools.client.http import Unreachable, member, request
from mcp_roundtrip_tools.smoke.endpoint import Endpoint, Sign
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
    basic = b64encode(f"{quote(client_id, '')}:{quote(client_secret, '')}".encode()).decode()
    headers = {"authorization": f"Basic {basic}", "content-type": "application/x-www-form-urlencoded"}
    form = urlencode({"grant_type": "client_credentials", **parameters}).encode()
    try:
        response = request("POST", url, headers, form, tls=endpoint.tls)
    except Unreachable as error:
        raise findings.stop("sign-in", str(error)) from error
    token = member(response, "access_token")
    if not isinstance(token, str):
        reason = member(response, "error_description") or member(response, "error") or response.status_code
        raise findings.stop("sign-in", f"{url} gives no token for CLIENT_ID: {reason}.")
    findings.ok("sign-in", f"{url} gave a token.")
    return token


def aws_signature(url: str) -> Sign:
    """Return a signer with the AWS credentials of the environment. Raises ValueError with one sentence."""
    import boto3  # only AuthMode iam needs it
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    named = re.search(r"\.execute-api\.([a-z0-9-]+)\.", url)
    region = named[1] if named else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    credentials = boto3.Session().get_credentials()
    if not region:
        raise ValueError("IAM=1 needs AWS_REGION, because the host of URL does not name the Region.")
    if credentials is None:
        raise ValueError("IAM=1 needs AWS credentials in the environment.")

    def sign(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Mapping[str, str]:
        unsigned = AWSRequest(method, url, data=body, headers=dict(headers))
        SigV4Auth(credentials, "execute-api", region).add_auth(unsigned)
        return dict(unsigned.headers.items())

    return sign
