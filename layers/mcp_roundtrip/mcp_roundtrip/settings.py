"""The environment, read once into one model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mcp_roundtrip.auth import AuthMode
from mcp_roundtrip.errors import SettingsError

PREFIX: Final = "MCP_"


class Settings(BaseModel):
    """Each field is the environment variable of its upper-case name with the prefix `MCP_`."""

    model_config = ConfigDict(frozen=True)

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
    """Keys whose states are still accepted."""
    allowed_origins: frozenset[str] = frozenset()
    """Origins of browsers that may call; a request without an Origin header is not from a browser."""
    owners: Mapping[str, str] = Field(default_factory=dict)
    """On the front door: owner -> function name or ARN."""
    max_rounds: int = Field(default=9, ge=1)
    """InputRequiredResults a call may get; the SDKs' clients stop after ten."""
    round_ttl_s: int = Field(default=600, ge=1)
    flow_ttl_s: int = Field(default=3_600, ge=1)

    @model_validator(mode="after")
    def _contradictions(self) -> Settings:
        if self.auth_mode is AuthMode.LAMBDA and not self.principal_context_key:
            raise SettingsError("MCP_PRINCIPAL_CONTEXT_KEY", "is needed when MCP_AUTH_MODE is lambda")
        return self

    def required(self, name: str) -> str:
        """The value of an optional text setting that is needed now. Raises SettingsError."""
        value = getattr(self, name)
        if not value:
            raise SettingsError(PREFIX + name.upper(), "is not set")
        return str(value)


_LISTS: Final = ("allowed_origins", "previous_state_key_arns")


def load(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises SettingsError naming the first variable that is missing or wrong."""
    values: dict[str, Any] = {
        name: text
        for name in Settings.model_fields
        if (text := environment.get(PREFIX + name.upper(), "").strip())
    }
    for name in _LISTS:
        if name in values:
            values[name] = [item.strip() for item in values[name].split(",") if item.strip()]
    try:
        if "owners" in values:
            values["owners"] = _json_object(values["owners"])
        return Settings.model_validate(values)
    except ValidationError as error:
        problem = error.errors(include_input=False, include_url=False)[0]
        raise SettingsError(PREFIX + str(problem["loc"][0]).upper(), problem["msg"]) from None


def _json_object(text: str) -> Any:
    from mcp_roundtrip.canonical import parse

    try:
        return parse(text)
    except ValueError as error:
        raise SettingsError("MCP_OWNERS", str(error)) from None
