"""Read the settings from environment variables."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from enum import StrEnum
from typing import Final, TypeVar

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.canonical import parse_json
from mcp_roundtrip.http import MAX_EVENT_BYTES
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.settings import (
    DEFAULTS,
    ISSUER,
    JWKS_URI,
    MAX_OPEN_TASKS,
    MAX_TASK_LEASE_S,
    MIN_TASK_LEASE_S,
    PREFIX,
    Audit,
    AuditMode,
    AwsClientKind,
    IamPrincipal,
    Settings,
    StateEncryption,
    StateSigning,
    TokenType,
    Traces,
)

# As browsers send it (RFC 6454 §6.2). One with a slash at the end, or "*", would match no browser.
_ORIGIN: Final = r"[a-z][a-z0-9+.-]*://[^\s/?#*]+"

ADOT_WRAPPER: Final = "/opt/otel-instrument"
"""The script of an OpenTelemetry layer for Python that starts the function."""

_QUEUE_URL: Final = r"https?://"
_WORKER: Final = r"arn:[a-z-]+:lambda:|https?://"

# The API Reference of CloudWatch Logs, `logGroupName`.
_LOG_GROUP: Final = r"[\w./#-]{1,512}"

# The characters of a function's name or ARN with an alias or $LATEST; * is the owner.
_OWNER_PATTERN: Final = r"[A-Za-z0-9:$_-]*\*[A-Za-z0-9:$_-]*"

# RFC 6749 §3.3.
_SCOPE_CHARACTERS: Final = r"[\x21\x23-\x5b\x5d-\x7e]*"

# SEP-2127, `ServerCard.name`.
_CARD_NAME: Final = r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+"
_MAX_CARD_NAME: Final = 200

_MAX_COUNT: Final = 10**9 - 1

_Choice = TypeVar("_Choice", bound=StrEnum)


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises SettingsError that names the first variable that is missing or wrong."""
    variables = _Variables(environment)
    return Settings(
        auth_mode=_auth_mode(variables),
        principal_context_key=variables.text("PRINCIPAL_CONTEXT_KEY") or DEFAULTS["principal_context_key"],
        scope_context_key=variables.text("SCOPE_CONTEXT_KEY"),
        token_issuer=variables.url("TOKEN_ISSUER", ISSUER),
        token_jwks_uri=variables.url("TOKEN_JWKS_URI", JWKS_URI),
        token_algorithms=_token_algorithms(variables),
        token_type=variables.choice("TOKEN_TYPE", TokenType, TokenType.ANY),
        token_audience=variables.items("TOKEN_AUDIENCE"),
        scope_prefix=_scope_prefix(variables),
        iam_principal=variables.choice("IAM_PRINCIPAL", IamPrincipal, IamPrincipal.ROLE),
        issuer=variables.text("ISSUER"),
        audience=variables.text("AUDIENCE"),
        state_key_arn=variables.text("STATE_KEY_ARN"),
        trusted_state_key_arns=variables.items("TRUSTED_STATE_KEY_ARNS"),
        state_public_keys=_public_keys(variables),
        state_signing=variables.choice("STATE_SIGNING", StateSigning, StateSigning.DIRECT),
        revoked_certificates=_certificate_ids(variables),
        state_encryption=variables.choice("STATE_ENCRYPTION", StateEncryption, StateEncryption.ENABLED),
        state_encryption_key_arn=variables.text("STATE_ENCRYPTION_KEY_ARN"),
        trusted_state_encryption_key_arns=variables.items("TRUSTED_STATE_ENCRYPTION_KEY_ARNS"),
        aws_client=variables.choice("AWS_CLIENT", AwsClientKind, AwsClientKind.SIGNED),
        allowed_origins=_origins(variables),
        owners=_owners(variables),
        task_table=variables.text("TASK_TABLE"),
        task_worker=_task_worker(variables),
        task_wake_queue=_task_wake_queue(variables),
        task_lease_s=variables.count(
            "TASK_LEASE_S", DEFAULTS["task_lease_s"], MIN_TASK_LEASE_S, MAX_TASK_LEASE_S
        ),
        max_open_tasks=variables.count("MAX_OPEN_TASKS", DEFAULTS["max_open_tasks"], 0, MAX_OPEN_TASKS),
        max_rounds=variables.count("MAX_ROUNDS", DEFAULTS["max_rounds"]),
        round_ttl_s=variables.count("ROUND_TTL_S", DEFAULTS["round_ttl_s"]),
        flow_ttl_s=variables.count("FLOW_TTL_S", DEFAULTS["flow_ttl_s"]),
        max_body_bytes=variables.count("MAX_BODY_BYTES", DEFAULTS["max_body_bytes"], most=MAX_EVENT_BYTES),
        max_json_values=variables.count("MAX_JSON_VALUES", DEFAULTS["max_json_values"]),
        audit=_audit(variables),
        traces=variables.choice("TRACES", Traces, _default_traces(environment)),
        server_card=_server_card(variables),
    )


class _Variables:
    """Reads variables by their names without the prefix. Its methods raise SettingsError."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment

    def text(self, name: str) -> str | None:
        """Return the value without surrounding white space; None if nothing is left."""
        return self._environment.get(PREFIX + name, "").strip() or None

    def items(self, name: str) -> tuple[str, ...]:
        """Return the items of a comma-separated list."""
        items = (item.strip() for item in (self.text(name) or "").split(","))
        return tuple(item for item in items if item)

    def choice(self, name: str, choices: type[_Choice], default: _Choice) -> _Choice:
        """Return a member of an enumeration."""
        text = self.text(name)
        if text is None:
            return default
        if text not in choices.__members__.values():
            raise SettingsError(PREFIX + name, f"must be one of {', '.join(choices)}")
        return choices(text)

    def url(self, name: str, pattern: str) -> str | None:
        """Return a URL that matches the pattern."""
        url = self.text(name)
        if url is not None and not re.fullmatch(pattern, url):
            problem = "must be an https URL without a fragment, and an issuer's without a query"
            raise SettingsError(PREFIX + name, problem)
        return url

    def count(self, name: str, default: int, least: int = 1, most: int = _MAX_COUNT) -> int:
        """Return a whole number within bounds."""
        text = self.text(name)
        if text is None:
            return default
        if not text.isdecimal() or len(text) > 9 or not least <= int(text) <= most:
            bounds = f"of at least {least}" if most == _MAX_COUNT else f"from {least} to {most}"
            raise SettingsError(PREFIX + name, f"must be a whole number {bounds}")
        return int(text)


def _auth_mode(variables: _Variables) -> AuthMode:
    if variables.text("AUTH_MODE") is None and variables.text("TOKEN_ISSUER") is None:
        problem = f"must be one of {', '.join(AuthMode)}; it has a default only with MCP_TOKEN_ISSUER: bearer"
        raise SettingsError("MCP_AUTH_MODE", problem)
    return variables.choice("AUTH_MODE", AuthMode, AuthMode.BEARER)


def _token_algorithms(variables: _Variables) -> tuple[str, ...]:
    names = variables.items("TOKEN_ALGORITHMS")
    if not names:
        algorithms: tuple[str, ...] = DEFAULTS["token_algorithms"]
        return algorithms
    from mcp_roundtrip.auth.jwks import SIGNATURE_ALGORITHMS  # most deployments use the default

    if not SIGNATURE_ALGORITHMS.issuperset(names):
        problem = f"must be among {', '.join(sorted(SIGNATURE_ALGORITHMS))}"
        raise SettingsError("MCP_TOKEN_ALGORITHMS", problem)
    return names


def _scope_prefix(variables: _Variables) -> str:
    prefix = variables.text("SCOPE_PREFIX") or ""
    if not re.fullmatch(_SCOPE_CHARACTERS, prefix):
        raise SettingsError("MCP_SCOPE_PREFIX", "must be the start of a scope, without spaces and quotes")
    return prefix


def _server_card(variables: _Variables) -> str | None:
    name = variables.text("SERVER_CARD")
    if name is not None and (len(name) > _MAX_CARD_NAME or not re.fullmatch(_CARD_NAME, name)):
        problem = "must be a reverse domain name, a slash and a name, such as com.example/weather"
        raise SettingsError("MCP_SERVER_CARD", problem)
    return name


def _audit(variables: _Variables) -> Audit | None:
    mode, _, group = (variables.text("AUDIT") or "").partition(":")
    if not mode:
        return None
    if mode not in AuditMode.__members__.values() or not re.fullmatch(_LOG_GROUP, group):
        problem = f"must be {' or '.join(AuditMode)}, a colon, and the name of a log group"
        raise SettingsError("MCP_AUDIT", problem)
    return Audit(AuditMode(mode), group)


def _default_traces(environment: Mapping[str, str]) -> Traces:
    return Traces.ON if environment.get("AWS_LAMBDA_EXEC_WRAPPER") == ADOT_WRAPPER else Traces.OFF


def _task_worker(variables: _Variables) -> str | None:
    worker = variables.text("TASK_WORKER")
    if worker is not None and not re.match(_WORKER, worker):
        raise SettingsError("MCP_TASK_WORKER", "must be the ARN of a Lambda function or the URL of a queue")
    return worker


def _task_wake_queue(variables: _Variables) -> str | None:
    queue = variables.text("TASK_WAKE_QUEUE")
    if queue is not None and not re.match(_QUEUE_URL, queue):
        raise SettingsError("MCP_TASK_WAKE_QUEUE", "must be the URL of a queue")
    return queue


def _origins(variables: _Variables) -> frozenset[str]:
    origins = variables.items("ALLOWED_ORIGINS")
    if not all(re.fullmatch(_ORIGIN, each) for each in origins):
        raise SettingsError("MCP_ALLOWED_ORIGINS", "must be origins such as https://app.example")
    return frozenset(origins)


def _certificate_ids(variables: _Variables) -> frozenset[str]:
    ids = variables.items("REVOKED_CERTIFICATES")
    if not all(re.fullmatch("[0-9a-f]{32}", jti) for jti in ids):
        raise SettingsError("MCP_REVOKED_CERTIFICATES", "must hold 32 lower-case hexadecimal digits for each")
    return frozenset(ids)


def _public_keys(variables: _Variables) -> Mapping[str, bytes]:
    public_keys = {}
    for item in variables.items("STATE_PUBLIC_KEYS"):
        key_id, _, spki = item.partition(":")
        try:
            public_keys[key_id] = b64decode(spki, validate=True)
        except ValueError:
            spki = ""
        if not key_id or not spki:
            raise SettingsError("MCP_STATE_PUBLIC_KEYS", "must hold <key id>:<Base64>, comma-separated")
    return public_keys


def _owners(variables: _Variables) -> Mapping[str, str] | str | None:
    text = variables.text("OWNERS")
    if text is None or re.fullmatch(_OWNER_PATTERN, text):
        return text
    if not text.startswith("{"):
        problem = "must be a JSON object of functions by owner, or a function's name or ARN with one * in it"
        raise SettingsError("MCP_OWNERS", problem)
    try:
        owners = parse_json(text)
    except ValueError as error:
        problem = f"must be a JSON object from owners to functions ({error})"
        raise SettingsError("MCP_OWNERS", problem) from None
    if not all(isinstance(name, str) for name in owners.values()):
        problem = "must be a JSON object with one function name or ARN for each owner"
        raise SettingsError("MCP_OWNERS", problem)
    return dict(owners)
