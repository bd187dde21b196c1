"""Who may call the stand-ins for AWS services: programs that hold this run's access key."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from mcp_roundtrip_local.http.browser_protection import from_a_page
from mcp_roundtrip_local.http.messages import Reply, Request

_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 .*?\bCredential=([^/,\s]+)/")


@dataclass(frozen=True, slots=True)
class Credentials:
    """AWS credentials as functions get them, by environment variable."""

    access_key_id: str
    secret_access_key: str
    session_token: str

    @classmethod
    def random(cls) -> Credentials:
        """Credentials that no other program can guess."""
        # botocore and its peers take any text; the prefix is that of temporary keys.
        return cls(f"ASIA{secrets.token_hex(16).upper()}", secrets.token_hex(20), secrets.token_hex(20))

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Credentials | None:
        """The credentials in `variables`, with which functions then sign every request; None without any."""
        access_key_id = variables.get("AWS_ACCESS_KEY_ID")
        if access_key_id is None:
            return None
        secret, token = variables.get("AWS_SECRET_ACCESS_KEY", ""), variables.get("AWS_SESSION_TOKEN", "")
        return cls(access_key_id, secret, token)

    def variables(self) -> dict[str, str]:
        """The environment variables that AWS SDKs read."""
        found = {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }
        return {name: value for name, value in found.items() if value}

    def guard(self, respond: Callable[[Request], Reply]) -> Callable[[Request], Reply]:
        """`respond` for requests that are signed with this access key; 403 for all others.

        The signature itself is not computed again: the access key is as secret as what would sign.
        """

        def guarded(request: Request) -> Reply:
            if self._is_presigned(request):
                return respond(request)
            return from_a_page(request) or self._refusal(request) or respond(request)

        return guarded

    def _is_presigned(self, request: Request) -> bool:
        """Whether the URL contains the access key, as a presigned URL does: a browser may follow it."""
        query = parse_qs(request.target.partition("?")[2])
        given = query.get("X-Amz-Credential", query.get("AWSAccessKeyId", [""]))[0].partition("/")[0]
        return hmac.compare_digest(given.encode(), self.access_key_id.encode())

    def _refusal(self, request: Request) -> Reply | None:
        found = _CREDENTIAL.match(request.header("authorization") or "")
        if found and hmac.compare_digest(found[1].encode(), self.access_key_id.encode()):
            return None
        code = "UnrecognizedClientException" if found else "MissingAuthenticationTokenException"
        message = (
            "sign the request with the access key of this run: functions have it in AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN"
        )
        body = json.dumps({"__type": code, "message": message, "Message": message})
        return Reply(403, (("content-type", "application/json"), ("x-amzn-errortype", code)), body.encode())
