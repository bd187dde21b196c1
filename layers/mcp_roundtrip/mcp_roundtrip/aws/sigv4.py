"""Sign requests with AWS Signature Version 4. A pure function of the request, the credentials and the time.

https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Sequence
from hashlib import sha256
from posixpath import normpath
from typing import Final
from urllib.parse import quote

ALGORITHM: Final = "AWS4-HMAC-SHA256"

Headers = Sequence[tuple[str, str]]


class AwsCredentials:
    """The keys of an IAM principal. They have no `repr`, so that no log can contain them."""

    __slots__ = ("access_key_id", "secret_access_key", "session_token")

    def __init__(self, access_key_id: str, secret_access_key: str, session_token: str | None = None) -> None:
        self.access_key_id = access_key_id
        self.secret_access_key = secret_access_key
        self.session_token = session_token


def sign(
    method: str,
    path: str,
    query: str,
    headers: Headers,
    body: bytes,
    *,
    credentials: AwsCredentials,
    region: str,
    service: str,
    at: float,
) -> Headers:
    """Return the headers that authenticate a request at the time `at` (epoch seconds).

    `path` and `query` are as they are sent: percent-encoded. All `headers` are signed; they include Host.
    """
    timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
    added = [("X-Amz-Date", timestamp)]
    if credentials.session_token:
        added.append(("X-Amz-Security-Token", credentials.session_token))
    request, names = canonical_request(method, path, query, [*headers, *added], body)
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    to_sign = f"{ALGORITHM}\n{timestamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    credential = f"Credential={credentials.access_key_id}/{scope}"
    added.append(("Authorization", f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"))
    return added


def canonical_request(method: str, path: str, query: str, headers: Headers, body: bytes) -> tuple[str, str]:
    """Return the canonical request, and the names of its headers as they are listed in the signature."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        values.setdefault(name.lower(), []).append(" ".join(value.split()))
    names = ";".join(sorted(values))
    lines = [
        method,
        quote(_normalized(path)),
        _canonical_query(query),
        *(f"{name}:{','.join(values[name])}" for name in sorted(values)),
        "",
        names,
        sha256(body).hexdigest(),
    ]
    return "\n".join(lines), names


def _canonical_query(query: str) -> str:
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else []
    return "&".join(f"{name}={value}" for name, value in pairs)


def _normalized(path: str) -> str:
    """Return a path without empty segments and `.`, with `..` resolved, as botocore does."""
    normalized = normpath(f"/{path.strip('/')}")
    return f"{normalized}/" if path.endswith("/") and normalized != "/" else normalized
