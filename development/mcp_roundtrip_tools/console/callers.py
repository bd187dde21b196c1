"""The caller of a recorded request, by the access token that it carried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_roundtrip.auth.callers import Principal
from mcp_roundtrip.errors import StateRejected
from mcp_roundtrip.state import claims as state_claims
from mcp_roundtrip.state import jws
from mcp_roundtrip_tools.run.observation.records import HttpExchange, header


def caller_of(exchange: HttpExchange, claims: Mapping[str, Any]) -> str | None:
    """Return the subject of the request's token if a state with these claims is bound to it.

    The token is not verified here. The digest in the state shows that the function verified it.
    """
    token = _bearer_claims(exchange)
    if token is None or "sub" not in claims:
        return None
    issuer, subject = token.get("iss"), token.get("sub")
    client = next((token[name] for name in ("client_id", "azp") if name in token), None)
    principal = Principal("jwt", str(subject), issuer, client).canonical()
    is_bound = state_claims.principal_digest(claims["jti"], principal) == claims["sub"]
    return str(subject) if is_bound else None


def _bearer_claims(exchange: HttpExchange) -> dict[str, Any] | None:
    scheme, _, token = header(exchange.request_headers, "authorization").partition(" ")
    if scheme.lower() != "bearer":
        return None
    try:
        parts = jws.split(jws.to_ascii(token.strip(), 16_384), 3)
        return jws.decode_json_object(parts[1], "payload")
    except StateRejected:
        return None
