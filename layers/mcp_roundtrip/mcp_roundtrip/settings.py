"""The environment, read once into one frozen object."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final, TypeVar

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.canonical import parse
from mcp_roundtrip.errors import SettingsError
from mcp_roundtrip.http import MAX_BODY_BYTES, MAX_EVENT_BYTES, MAX_JSON_VALUES

PREFIX: Final = "MCP_"

MAX_DELEGATED_TTL_S: Final = 1200
"""With delegated signing a certificate of 1,800 s must outlast every state and leave time to sign them."""

# An alias can be pointed at another key while its public half is cached: only a key's own ARN will do.
_KEY_ARN: Final = re.compile(r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+")

# Keys that are fetched without TLS are anybody's; a developer's own issuer is not fetched from anywhere.
_HTTPS: Final = r"(https://[^/?#\s@]+|http://(127\.0\.0\.1|localhost)(:\d+)?)(/[^?#\s]*)?"
_ISSUER: Final = re.compile(_HTTPS)
_JWKS_URI: Final = re.compile(_HTTPS + r"(\?[^#\s]*)?")

# As browsers write them (RFC 6454 §6.2): one with a slash at the end, or "*", would let nobody in.
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#*]+")

_ONLY_WITH: Final = MappingProxyType(
    {
        "principal_context_key": (AuthMode.LAMBDA,),
        "scope_context_key": (AuthMode.LAMBDA,),
        "token_issuer": (AuthMode.BEARER, AuthMode.JWT, AuthMode.LAMBDA),
        "token_jwks_uri": (AuthMode.BEARER,),
        "token_algorithms": (AuthMode.BEARER,),
        "token_type": (AuthMode.BEARER,),
        "iam_principal": (AuthMode.IAM,),
    }
)
"""Whoever has set one of these takes callers to be identified by it: no other mode does that."""

_WORKER: Final = re.compile(r"arn:[a-z-]+:lambda:|https?://")

MAX_ROUND_TTL_S: Final = 3600
"""An epoch: a state may then be under the key of one of two, and no more."""

MAX_OPEN_TASKS: Final = 100
"""A call over the limit reads each of the caller's open tasks, one after the other."""

_Choice = TypeVar("_Choice", bound=StrEnum)


class StateEncryption(StrEnum):
    """Whether clients can read states."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class StateSigning(StrEnum):
    """Who signs states: KMS each of them, or a key in memory that KMS has certified."""

    DIRECT = "direct"
    DELEGATED = "delegated"


class TokenType(StrEnum):
    """Which `typ` access tokens have: one of those in use, or the one of RFC 9068."""

    ANY = "any"
    AT_JWT = "at+jwt"


class IamPrincipal(StrEnum):
    """Who a caller with a role's credentials is: the role, or its session."""

    ROLE = "role"
    SESSION = "session"


@dataclass(frozen=True)  # no slots: the defaults are read from the class below
class Settings:
    """Each field is the environment variable of its upper-case name with the prefix `MCP_`.

    A dataclass, because building a pydantic model costs every cold start more than all it would check here.
    """

    auth_mode: AuthMode
    principal_context_key: str | None = None
    """With `lambda`: the authorizer's context member that identifies the caller."""
    scope_context_key: str | None = None
    """With `lambda`: the authorizer's context member that holds the caller's scopes, separated by spaces."""
    token_issuer: str | None = None
    """Who issues access tokens, as their `iss` has it; with `jwt` and `lambda`, whom clients are sent to."""
    token_jwks_uri: str | None = None
    """With `bearer`: where the issuer's keys are, if its metadata is not to be asked."""
    token_algorithms: tuple[str, ...] = ("RS256", "ES256")
    """With `bearer`: what tokens may be signed with, comma-separated."""
    token_type: TokenType = TokenType.ANY
    """With `bearer`: which `typ` tokens must have; `at+jwt` keeps an issuer's other tokens out."""
    iam_principal: IamPrincipal = IamPrincipal.ROLE
    """With `iam`: whether the sessions of a role are one caller."""
    issuer: str | None = None
    """Who issues states: the same for all functions behind one endpoint."""
    audience: str | None = None
    """The endpoint's canonical URI (RFC 8707): the same for all functions behind it."""
    state_key_arn: str | None = None
    """The ECC_NIST_P256 KMS key that signs states."""
    trusted_state_key_arns: tuple[str, ...] = ()
    """Further keys whose states are accepted, comma-separated: the next and the previous in a rotation."""
    state_public_keys: Mapping[str, bytes] = field(default_factory=dict)
    """Public halves of these keys (key id -> SubjectPublicKeyInfo), as `<key id>:<Base64>`, comma-separated.

    With them KMS is never asked for public keys."""
    state_signing: StateSigning = StateSigning.DIRECT
    revoked_certificates: frozenset[str] = frozenset()
    """The `jti` of certificates that are not accepted any more, comma-separated."""
    state_encryption: StateEncryption = StateEncryption.ENABLED
    """Whether states are encrypted, and must be."""
    state_encryption_key_arn: str | None = None
    """The HMAC_256 KMS key that epoch keys are derived from."""
    trusted_state_encryption_key_arns: tuple[str, ...] = ()
    """Further such keys whose states are opened, comma-separated."""
    allowed_origins: frozenset[str] = frozenset()
    """Origins of browsers that may call, comma-separated."""
    owners: Mapping[str, str] | None = None
    """On the front door: a JSON object, owner -> function name or ARN."""
    task_table: str | None = None
    """The DynamoDB table of tasks."""
    task_worker: str | None = None
    """Who works on this server's tasks: a function's ARN with its version, or the URL of its queue."""
    max_open_tasks: int = 10
    """Open tasks that one principal may have; 0 is no limit. All anonymous callers are one principal."""
    max_rounds: int = 9
    """InputRequiredResults a call may get; the SDKs' clients stop after ten."""
    round_ttl_s: int = 600
    flow_ttl_s: int = 3_600
    max_body_bytes: int = MAX_BODY_BYTES
    """Bytes of a request's body: at most what Lambda takes."""
    max_json_values: int = MAX_JSON_VALUES
    """JSON values in a request's body. Memory and time of a request grow with them."""

    def required(self, name: str) -> str:
        """The value of an optional text setting that is needed now. Raises SettingsError."""
        value = getattr(self, name)
        if not value:
            raise SettingsError(PREFIX + name.upper(), "is not set; set it in the function's environment")
        return str(value)

    def key_arns(self, *names: str) -> tuple[str, ...]:
        """The KMS keys in these settings, in this order. Raises SettingsError for what is no key's ARN."""
        arns: list[str] = []
        for name in names:
            value: str | tuple[str, ...] | None = getattr(self, name)
            given = (value,) if isinstance(value, str) else value or ()
            if not all(map(_KEY_ARN.fullmatch, given)):
                raise SettingsError(PREFIX + name.upper(), "must be the ARN of a KMS key, and not an alias")
            arns += given
        return tuple(arns)


def load(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises SettingsError naming the first variable that is missing or wrong."""
    settings = Settings(
        auth_mode=_choice(environment, "AUTH_MODE", AuthMode),
        principal_context_key=_text(environment, "PRINCIPAL_CONTEXT_KEY"),
        scope_context_key=_text(environment, "SCOPE_CONTEXT_KEY"),
        token_issuer=_url(environment, "TOKEN_ISSUER", _ISSUER),
        token_jwks_uri=_url(environment, "TOKEN_JWKS_URI", _JWKS_URI),
        token_algorithms=_token_algorithms(environment),
        token_type=_choice(environment, "TOKEN_TYPE", TokenType, TokenType.ANY),
        iam_principal=_choice(environment, "IAM_PRINCIPAL", IamPrincipal, IamPrincipal.ROLE),
        issuer=_text(environment, "ISSUER"),
        audience=_text(environment, "AUDIENCE"),
        state_key_arn=_text(environment, "STATE_KEY_ARN"),
        trusted_state_key_arns=_items(environment, "TRUSTED_STATE_KEY_ARNS"),
        state_public_keys=_public_keys(environment),
        state_signing=_choice(environment, "STATE_SIGNING", StateSigning, StateSigning.DIRECT),
        revoked_certificates=_certificate_ids(environment),
        state_encryption=_choice(environment, "STATE_ENCRYPTION", StateEncryption, StateEncryption.ENABLED),
        state_encryption_key_arn=_text(environment, "STATE_ENCRYPTION_KEY_ARN"),
        trusted_state_encryption_key_arns=_items(environment, "TRUSTED_STATE_ENCRYPTION_KEY_ARNS"),
        allowed_origins=_origins(environment),
        owners=_owners(environment),
        task_table=_text(environment, "TASK_TABLE"),
        task_worker=_task_worker(environment),
        max_open_tasks=_count(environment, "MAX_OPEN_TASKS", Settings.max_open_tasks, 0, MAX_OPEN_TASKS),
        max_rounds=_count(environment, "MAX_ROUNDS", Settings.max_rounds),
        round_ttl_s=_count(environment, "ROUND_TTL_S", Settings.round_ttl_s),
        flow_ttl_s=_count(environment, "FLOW_TTL_S", Settings.flow_ttl_s),
        max_body_bytes=_count(environment, "MAX_BODY_BYTES", Settings.max_body_bytes, most=MAX_EVENT_BYTES),
        max_json_values=_count(environment, "MAX_JSON_VALUES", Settings.max_json_values),
    )
    _check_authorization(settings)
    has_mac_keys = settings.state_encryption_key_arn or settings.trusted_state_encryption_key_arns
    if settings.state_encryption is StateEncryption.DISABLED and has_mac_keys:
        raise SettingsError(
            "MCP_STATE_ENCRYPTION", "is disabled, and there are keys to encrypt with; remove one of them"
        )
    delegated = settings.state_signing is StateSigning.DELEGATED
    if settings.round_ttl_s > (most := MAX_DELEGATED_TTL_S if delegated else MAX_ROUND_TTL_S):
        problem = f"must be at most {most} with MCP_STATE_SIGNING {settings.state_signing}"
        raise SettingsError("MCP_ROUND_TTL_S", problem)
    return settings


def _check_authorization(settings: Settings) -> None:
    mode = settings.auth_mode
    for name, modes in _ONLY_WITH.items():
        if mode not in modes and getattr(settings, name) != getattr(Settings, name):
            known = " and ".join(modes)
            raise SettingsError(
                PREFIX + name.upper(), f"is set, and MCP_AUTH_MODE is {mode}; remove it, or use {known}"
            )
    if mode is AuthMode.LAMBDA:
        settings.required("principal_context_key")
    if mode is AuthMode.BEARER:
        settings.required("token_issuer")
    # The protected resource metadata are found by it.
    if settings.token_issuer is not None and not _ISSUER.fullmatch(settings.required("audience")):
        raise SettingsError("MCP_AUDIENCE", "must be an https URL without a query and a fragment")


def _text(environment: Mapping[str, str], name: str) -> str | None:
    return environment.get(PREFIX + name, "").strip() or None


def _choice(
    environment: Mapping[str, str], name: str, choices: type[_Choice], default: _Choice | None = None
) -> _Choice:
    text = _text(environment, name)
    if text is None and default is not None:
        return default
    if text is None or text not in choices.__members__.values():
        without = "" if default else ", and has no default"
        raise SettingsError(PREFIX + name, f"must be one of {', '.join(choices)}{without}")
    return choices(text)


def _url(environment: Mapping[str, str], name: str, pattern: re.Pattern[str]) -> str | None:
    url = _text(environment, name)
    if url is not None and not pattern.fullmatch(url):
        raise SettingsError(
            PREFIX + name, "must be an https URL without a fragment, and an issuer's without a query"
        )
    return url


def _token_algorithms(environment: Mapping[str, str]) -> tuple[str, ...]:
    names = _items(environment, "TOKEN_ALGORITHMS")
    if not names:
        return Settings.token_algorithms
    from mcp_roundtrip.auth.jwks import SIGNATURE_ALGORITHMS  # most deployments leave it at the default

    if not SIGNATURE_ALGORITHMS.issuperset(names):
        raise SettingsError(
            "MCP_TOKEN_ALGORITHMS", f"must be among {', '.join(sorted(SIGNATURE_ALGORITHMS))}"
        )
    return names


def _task_worker(environment: Mapping[str, str]) -> str | None:
    worker = _text(environment, "TASK_WORKER")
    if worker is not None and not _WORKER.match(worker):
        raise SettingsError("MCP_TASK_WORKER", "must be the ARN of a Lambda function or the URL of a queue")
    return worker


def _items(environment: Mapping[str, str], name: str) -> tuple[str, ...]:
    items = (item.strip() for item in (_text(environment, name) or "").split(","))
    return tuple(item for item in items if item)


def _origins(environment: Mapping[str, str]) -> frozenset[str]:
    origins = _items(environment, "ALLOWED_ORIGINS")
    if not all(map(_ORIGIN.fullmatch, origins)):
        raise SettingsError(f"{PREFIX}ALLOWED_ORIGINS", "must be origins such as https://app.example")
    return frozenset(origins)


def _count(
    environment: Mapping[str, str], name: str, default: int, least: int = 1, most: int = 10**9 - 1
) -> int:
    text = _text(environment, name)
    if text is None:
        return default
    if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
        bounds = f"of at least {least}" if most == 10**9 - 1 else f"from {least} to {most}"
        raise SettingsError(PREFIX + name, f"must be a whole number {bounds}")
    return int(text)


def _certificate_ids(environment: Mapping[str, str]) -> frozenset[str]:
    ids = _items(environment, "REVOKED_CERTIFICATES")
    if not all(re.fullmatch("[0-9a-f]{32}", jti) for jti in ids):
        raise SettingsError("MCP_REVOKED_CERTIFICATES", "must hold 32 lower-case hexadecimal digits for each")
    return frozenset(ids)


def _public_keys(environment: Mapping[str, str]) -> Mapping[str, bytes]:
    public_keys = {}
    for item in _items(environment, "STATE_PUBLIC_KEYS"):
        key_id, _, spki = item.partition(":")
        try:
            public_keys[key_id] = b64decode(spki, validate=True)
        except ValueError:
            spki = ""
        if not key_id or not spki:
            raise SettingsError("MCP_STATE_PUBLIC_KEYS", "must hold <key id>:<Base64>, comma-separated")
    return public_keys


def _owners(environment: Mapping[str, str]) -> Mapping[str, str] | None:
    text = _text(environment, "OWNERS")
    if text is None:
        return None
    try:
        owners = parse(text)
    except ValueError as error:
        raise SettingsError(
            "MCP_OWNERS", f"must be a JSON object from owners to functions ({error})"
        ) from None
    if not isinstance(owners, dict) or not all(isinstance(name, str) for name in owners.values()):
        raise SettingsError("MCP_OWNERS", "must be a JSON object of functions by owner")
    return owners
