"""The endpoint that is checked, its credentials (a token, or a signature), and what the checks find."""

import json
import os
import re
import ssl
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal
from urllib.parse import quote, urlencode

import httpx2

from mcp_roundtrip.protocol.constants import DISCOVER
from mcp_roundtrip_testing.http_requests import ACCEPT, client_meta, mirrored_headers
from mcp_roundtrip_tools.client.connection import Connection
from mcp_roundtrip_tools.client.http import BearerToken, Unreachable, member, request

Status = Literal["ok", "note", "wrong"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check in one sentence. `note`: works, but some clients need more."""

    check: str
    status: Status
    text: str

    def __str__(self) -> str:
        # Texts of servers must not begin lines: a line `::error::…` is a command to GitHub's runner.
        text = "".join(each if each.isprintable() else " " for each in self.text)
        return f"{self.status:<6}{self.check:<11}{text}"


class Stopped(Exception):
    """A check found what makes the remaining checks impossible; the finding is recorded."""


@dataclass
class Findings:
    """Records findings and passes each one to `show`."""

    show: Callable[[Finding], None] = lambda finding: None
    found: list[Finding] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether no finding is wrong."""
        return all(each.status != "wrong" for each in self.found)

    def ok(self, check: str, text: str) -> None:
        self._add(Finding(check, "ok", text))

    def note(self, check: str, text: str) -> None:
        self._add(Finding(check, "note", text))

    def wrong(self, check: str, text: str) -> None:
        self._add(Finding(check, "wrong", text))

    def stop(self, check: str, text: str) -> Stopped:
        """Record a wrong finding, and return the exception to raise."""
        self.wrong(check, text)
        return Stopped(text)

    def _add(self, finding: Finding) -> None:
        self.found.append(finding)
        self.show(finding)


CLIENT: Final = "mcp-roundtrip-smoke"


@dataclass(frozen=True)
class Endpoint:
    """An MCP endpoint. `signature` is for AuthMode iam; `tls` replaces the trusted certificates."""

    url: str
    token: str | None = field(default=None, repr=False)
    signature: httpx2.Auth | None = None
    tls: ssl.SSLContext | None = None

    @property
    def auth(self) -> httpx2.Auth | None:
        """The token or the signature of requests."""
        return self.signature if self.token is None else BearerToken(self.token)

    def connect(self) -> Connection:
        """Return a connection of the official client."""
        return Connection(self.url, CLIENT, self.auth, tls=self.tls)

    def discover(self, *, anonymous: bool = False) -> httpx2.Response:
        """Send `server/discover`; `anonymous` leaves out the token and the signature. Raises Unreachable."""
        meta = client_meta({"name": CLIENT, "version": "1.0.0"}, {})
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": DISCOVER, "params": {"_meta": meta}}).encode()
        headers = {**ACCEPT, **mirrored_headers(DISCOVER, {}, tools={})}
        auth = None if anonymous else self.auth
        return request("POST", self.url, headers, body, tls=self.tls, auth=auth)

    def get(self, url: str) -> httpx2.Response:
        """Fetch a document without authorization. Raises Unreachable."""
        return request("GET", url, {"accept": "application/json"}, tls=self.tls)


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
        from botocore.exceptions import BotoCoreError, ClientError

        named = re.search(r"\.execute-api\.([a-z0-9-]+)\.", url)
        region = named[1] if named else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        if not region:
            raise ValueError("IAM=1 needs AWS_REGION, because the host of URL does not name the Region.")
        try:
            credentials = boto3.Session().get_credentials()
            frozen = None if credentials is None else credentials.get_frozen_credentials()
        except (BotoCoreError, ClientError) as error:  # an unknown profile, or an expired sign-in
            raise ValueError(f"IAM=1 needs AWS credentials in the environment: {error}") from None
        if frozen is None:
            raise ValueError("IAM=1 needs AWS credentials in the environment.")
        self._signer = SigV4Auth(frozen, "execute-api", region)

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        from botocore.awsrequest import AWSRequest

        signed = {name: value for name, value in request.headers.items() if name.startswith(_SIGNED)}
        unsigned = AWSRequest(request.method, str(request.url), data=request.content, headers=signed)
        self._signer.add_auth(unsigned)
        request.headers.update(dict(unsigned.headers.items()))
        yield request
