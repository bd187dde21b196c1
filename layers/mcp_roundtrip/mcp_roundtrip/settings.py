"""The environment, read once into one frozen object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip.auth import AuthMode
from mcp_roundtrip.canonical import parse
from mcp_roundtrip.errors import SettingsError

PREFIX: Final = "MCP_"


@dataclass(frozen=True)  # no slots: the defaults are read from the class below
class Settings:
    """Each field is the environment variable of its upper-case name with the prefix `MCP_`.

    A dataclass, because building a pydantic model costs every cold start more than all it would check here.
    """

    auth_mode: AuthMode
    principal_context_key: str | None = None
    """With `lambda`: the authorizer's context member that identifies the caller."""
    issuer: str | None = None
    """Who issues states: the same for all functions behind one endpoint."""
    audience: str | None = None
    """The endpoint's canonical URI (RFC 8707): the same for all functions behind it."""
    state_key_arn: str | None = None
    """The ECC_NIST_P256 KMS key that signs states."""
    previous_state_key_arns: tuple[str, ...] = ()
    """Keys whose states are still accepted, comma-separated."""
    allowed_origins: frozenset[str] = frozenset()
    """Origins of browsers that may call, comma-separated."""
    owners: Mapping[str, str] | None = None
    """On the front door: a JSON object, owner -> function name or ARN."""
    max_rounds: int = 9
    """InputRequiredResults a call may get; the SDKs' clients stop after ten."""
    round_ttl_s: int = 600
    flow_ttl_s: int = 3_600

    def required(self, name: str) -> str:
        """The value of an optional text setting that is needed now. Raises SettingsError."""
        value = getattr(self, name)
        if not value:
            raise SettingsError(PREFIX + name.upper(), "is not set")
        return str(value)


def load(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises SettingsError naming the first variable that is missing or wrong."""
    settings = Settings(
        auth_mode=_auth_mode(environment),
        principal_context_key=_text(environment, "PRINCIPAL_CONTEXT_KEY"),
        issuer=_text(environment, "ISSUER"),
        audience=_text(environment, "AUDIENCE"),
        state_key_arn=_text(environment, "STATE_KEY_ARN"),
        previous_state_key_arns=_items(environment, "PREVIOUS_STATE_KEY_ARNS"),
        allowed_origins=frozenset(_items(environment, "ALLOWED_ORIGINS")),
        owners=_owners(environment),
        max_rounds=_count(environment, "MAX_ROUNDS", Settings.max_rounds),
        round_ttl_s=_count(environment, "ROUND_TTL_S", Settings.round_ttl_s),
        flow_ttl_s=_count(environment, "FLOW_TTL_S", Settings.flow_ttl_s),
    )
    if settings.auth_mode is AuthMode.LAMBDA:
        settings.required("principal_context_key")
    return settings


def _text(environment: Mapping[str, str], name: str) -> str | None:
    return environment.get(PREFIX + name, "").strip() or None


def _auth_mode(environment: Mapping[str, str]) -> AuthMode:
    text = _text(environment, "AUTH_MODE") or ""
    if text not in AuthMode.__members__.values():
        raise SettingsError("MCP_AUTH_MODE", f"must be one of {', '.join(AuthMode)}; there is no default")
    return AuthMode(text)


def _items(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    items = (item.strip() for item in (_text(environment, name) or "").split(","))
    return tuple(item for item in items if item)


def _count(environment: Mapping[str, str], name: str, default: int) -> int:
    text = _text(environment, name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 9 or int(text) < 1:
        raise SettingsError(PREFIX + name, "must be a whole number of at least 1")
    return int(text)


def _owners(environment: Mapping[str, str]) -> Mapping[str, str] | None:
    text = _text(environment, "OWNERS")
    if text is None:
        return None
    try:
        owners = parse(text)
    except ValueError as error:
        raise SettingsError("MCP_OWNERS", str(error)) from None
    if not isinstance(owners, dict) or not all(isinstance(name, str) for name in owners.values()):
        raise SettingsError("MCP_OWNERS", "must be a JSON object from owners to functions")
    return owners
