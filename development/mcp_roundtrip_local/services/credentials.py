"""Restrict the emulated AWS services to programs that have the access key of this run."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from mcp_roundtrip_local.http.browser_protection import refuse_web_page
from mcp_roundtrip_local.http.messages import Request, Response

_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 .*?\bCredential=([^/,\s]+)/")


@dataclass(frozen=True, slots=True)
class Credentials:
    """The AWS credentials that functions get in environment variables."""

    access_key_id: str
    secret_access_key: str
    session_token: str

    @classmethod
    def random(cls) -> Credentials:
        """Return credentials that no other program can guess."""
        # SDKs accept any string; ASIA is the prefix of temporary keys.
        return cls(f"ASIA{secrets.token_hex(16).upper()}", secrets.token_hex(20), secrets.token_hex(20))

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Credentials | None:
        """Return the credentials in `variables`, or None. Functions sign with them if they are set."""
        access_key_id = variables.get("AWS_ACCESS_KEY_ID")
        if access_key_id is None:
            return None
        secret, token = variables.get("AWS_SECRET_ACCESS_KEY", ""), variables.get("AWS_SESSION_TOKEN", "")
        return cls(access_key_id, secret, token)

    def variables(self) -> dict[str, str]:
        """Return the environment variables that AWS SDKs read."""
        found = {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }
        return {name: value for name, value in found.items() if value}

    def guard(self, respond: Callable[[Request], Response]) -> Callable[[Request], Response]:
        """Return `respond` restricted to requests signed with this access key; others get 403.

        The signature is not verified, because the access key itself is secret.
        """

        def guarded(request: Request) -> Response:
            if self._is_presigned(request):
                return respond(request)
            return refuse_web_page(request) or self._refusal(request) or respond(request)

        return guarded

    def _is_presigned(self, request: Request) -> bool:
        """Return whether this is a presigned URL with the access key. Browsers may open it."""
        query = parse_qs(request.target.partition("?")[2])
        given = query.get("X-Amz-Credential", query.get("AWSAccessKeyId", [""]))[0].partition("/")[0]
        return hmac.compare_digest(given.encode(), self.access_key_id.encode())

    def _refusal(self, request: Request) -> Response | None:
        found = _CREDENTIAL.match(request.header("authorization") or "")
        if found and hmac.compare_digest(found[1].encode(), self.access_key_id.encode()):
            return None
        code = "UnrecognizedClientException" if found else "MissingAuthenticationTokenException"
        message = (
            "sign the request with the access key of this run: functions have it in AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
        )
        body = json.dumps({"__type": code, "message": message, "Message": message})
        return Response(
            403, (("content-type", "application/json"), ("x-amzn-errortype", code)), body.encode()
        )
