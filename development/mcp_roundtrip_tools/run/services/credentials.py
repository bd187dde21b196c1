"""Restrict the emulated AWS services to programs that have the access key of this run."""

from __future__ import annotations

import hmac
import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import parse_qs

from mcp_roundtrip_tools.run.http.browser_protection import refuse_web_page
from mcp_roundtrip_tools.run.http.messages import Request, Response

_CREDENTIAL = re.compile(r"AWS4-HMAC-SHA256 .*?\bCredential=([^/,\s]+)/(?:[0-9]+/[a-z0-9-]+/([a-z0-9-]+)/)?")

Respond = Callable[[Request], Response]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The AWS credentials that functions get in environment variables.

    Each execution environment has its own access key id, that of the run with the environment's number as a
    suffix, so that services know which environment calls them.
    """

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

    def for_environment(self, suffix: str) -> Credentials:
        """Return the credentials of an execution environment. `suffix` consists of digits."""
        return replace(self, access_key_id=self.access_key_id + suffix)

    def environment_of(self, request: Request) -> str | None:
        """Return the suffix of the execution environment that signed a request; None if none did."""
        given = _access_key_id(request)
        return given.removeprefix(self.access_key_id) if self._accepts(given) else None

    def variables(self) -> dict[str, str]:
        """Return the environment variables that AWS SDKs read."""
        found = {
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_SESSION_TOKEN": self.session_token,
        }
        return {name: value for name, value in found.items() if value}

    def guard(self, respond: Respond) -> Respond:
        """Return `respond` restricted to requests signed with this access key; others get 403.

        The signature is not verified, because the access key itself is secret.
        """

        def guarded(request: Request) -> Response:
            if self._accepts(_presigned_key_id(request)):
                return respond(request)
            return refuse_web_page(request) or self._refusal(request) or respond(request)

        return guarded

    def _accepts(self, given: str) -> bool:
        """Return whether this is the access key id of the run or of one of its execution environments."""
        key, suffix = given[: len(self.access_key_id)], given[len(self.access_key_id) :]
        is_known = hmac.compare_digest(key.encode(), self.access_key_id.encode())
        return is_known and (suffix == "" or (suffix.isascii() and suffix.isdigit()))

    def _refusal(self, request: Request) -> Response | None:
        found = _CREDENTIAL.match(request.header("authorization") or "")
        if found and self._accepts(found[1]):
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


def signing_scope(request: Request) -> str | None:
    """Return the name of the service for which a request is signed; None for a request without signature."""
    found = _CREDENTIAL.match(request.header("authorization") or "")
    if found:
        return found[2]
    return "s3" if _presigned_key_id(request) else None


def _access_key_id(request: Request) -> str:
    found = _CREDENTIAL.match(request.header("authorization") or "")
    return found[1] if found else _presigned_key_id(request)


def _presigned_key_id(request: Request) -> str:
    """Return the access key id of a presigned URL, or an empty text. Browsers may open such a URL."""
    query = parse_qs(request.target.partition("?")[2])
    return query.get("X-Amz-Credential", query.get("AWSAccessKeyId", [""]))[0].partition("/")[0]
