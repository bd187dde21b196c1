"""What an access token says about itself, compared with what the endpoint publishes. Nothing is verified."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

LEEWAY_S = 30


def claims_of(token: str) -> Mapping[str, Any] | None:
    """Return the claims of a JWT, or None if the token is not one."""
    parts = token.split(".")
    if len(parts) != 3:
        return None
    try:
        claims = json.loads(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return None
    return claims if isinstance(claims, dict) else None


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
