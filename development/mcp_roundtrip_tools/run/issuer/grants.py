"""Authorization codes and refresh tokens. Each is used once."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
import time
from base64 import urlsafe_b64encode
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip_tools.run.issuer.errors import OAuthError

CODE_LIFETIME_S: Final = 60
REFRESH_LIFETIME_S: Final = 30 * 24 * 3_600

MAX_GRANTS: Final = 10_000

_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a user has granted to a client. `challenge` is of PKCE, in its method S256."""

    user: str
    client_id: str
    scopes: frozenset[str]
    resource: str
    redirect_uri: str | None
    challenge: str
    wants_id_token: bool = False
    nonce: str | None = None


class OneTimeGrants:
    """Grants by a secret that a client redeems once. The oldest are dropped."""

    def __init__(self, lifetime_s: float) -> None:
        self._lifetime_s = lifetime_s
        self._lock = threading.Lock()
        self._grants: OrderedDict[str, tuple[Grant, float]] = OrderedDict()

    def add(self, grant: Grant) -> str:
        """Return the secret of a grant."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._grants[secret] = (grant, time.monotonic() + self._lifetime_s)
            while len(self._grants) > MAX_GRANTS:
                self._grants.popitem(last=False)
        return secret

    def redeem(self, secret: str) -> Grant:
        """Return the grant, and forget it. Raises OAuthError."""
        with self._lock:
            found = self._grants.pop(secret, None)
        if found is None or found[1] < time.monotonic():
            raise OAuthError("invalid_grant", "it is unknown, expired, or was used before: sign in again")
        return found[0]


def check_verifier(grant: Grant, verifier: str | None) -> None:
    """Raise OAuthError unless the verifier is that of the challenge (RFC 7636 §4.6)."""
    if verifier is None or not _VERIFIER.fullmatch(verifier):
        raise OAuthError("invalid_grant", "code_verifier has 43 to 128 characters (RFC 7636)")
    digest = urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
    if not secrets.compare_digest(digest, grant.challenge.encode()):
        raise OAuthError("invalid_grant", "code_verifier does not match code_challenge")
