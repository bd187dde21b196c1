"""The options of `make run` for the local issuer, and what its start message says about it."""

from __future__ import annotations

from collections.abc import Mapping

from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer
from mcp_roundtrip_tools.run.issuer.users import User, make_users
from mcp_roundtrip_tools.template.model import TemplateError


def read_users(
    names: str | None, scopes: str | None, parameters: Mapping[str, str]
) -> tuple[User, ...] | None:
    """Return the users of the local issuer, or None if it does not run. Raises TemplateError.

    It runs if users or scopes are given, and for AuthMode bearer without a TokenIssuer.
    """
    mode, has_issuer = parameters.get("AuthMode", "bearer"), bool(parameters.get("TokenIssuer"))
    if names is None and scopes is None:
        return make_users("") if "AuthMode" in parameters and mode == "bearer" and not has_issuer else None
    if mode != "bearer" or has_issuer:
        other = "TokenIssuer" if has_issuer else f"AuthMode {mode}"
        raise TemplateError(f"USER and SCOPES (--user, --scopes) are for the local issuer: leave out {other}")
    try:
        return make_users(names or "", scopes)
    except ValueError as error:
        raise TemplateError(f"--user or --scopes: {error}") from None


def describe_issuer(issuer: LocalIssuer) -> str:
    """Return what the start message says: where callers sign in, and as whom."""
    names = " or ".join(user.name for user in issuer.users)
    scopes = issuer.users[0].scopes
    granted = "" if scopes is None else f", with the scopes {' '.join(sorted(scopes)) or '(none)'}"
    first = issuer.users[0].name
    return f"Callers sign in as {names}{granted}: clients at {issuer.url}, make call with USER={first}."
