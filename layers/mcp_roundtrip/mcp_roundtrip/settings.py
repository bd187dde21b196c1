"""The settings of a deployment. `environment.load_settings` reads them from environment variables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct, field

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.http import MAX_BODY_BYTES, MAX_JSON_VALUES
from mcp_roundtrip.internal_errors import SettingsError

PREFIX: Final = "MCP_"

MAX_ROUND_TTL_S: Final = 3_600
"""One epoch, so that a state can be encrypted with the key of one of two epochs only."""

MAX_DELEGATED_TTL_S: Final = 1_200
"""With delegated signing, a certificate of 1,800 s must outlast the states that it certifies."""

MIN_TASK_LEASE_S: Final = 15
"""A lease is renewed after a third of it, and a request to DynamoDB may take ten seconds with its retries."""

MAX_TASK_LEASE_S: Final = 900
"""Lambda's longest timeout."""

MAX_OPEN_TASKS: Final = 100
"""A call over the limit reads each of the caller's open tasks, one after the other."""

# A key's own ARN is required: an alias can be moved to another key while its public key is cached.
_KEY_ARN: Final = r"arn:[a-z-]+:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+"

# Keys fetched without TLS cannot be trusted, except from a development issuer on the same computer.
ISSUER: Final = r"(https://[^/?#\s@]+|http://(127\.0\.0\.1|localhost)(:\d+)?)(/[^?#\s]*)?"
JWKS_URI: Final = ISSUER + r"(\?[^#\s]*)?"

_MODES_OF: Final = MappingProxyType(
    {
        "principal_context_key": (AuthMode.LAMBDA,),
        "scope_context_key": (AuthMode.LAMBDA,),
        "token_issuer": (AuthMode.BEARER, AuthMode.JWT, AuthMode.LAMBDA),
        "token_jwks_uri": (AuthMode.BEARER,),
        "token_algorithms": (AuthMode.BEARER,),
        "token_type": (AuthMode.BEARER,),
        "token_audience": (AuthMode.BEARER,),
        "scope_prefix": (AuthMode.BEARER, AuthMode.JWT, AuthMode.LAMBDA),
        "iam_principal": (AuthMode.IAM,),
    }
)
"""Setting -> the modes that use it. With another mode it would have no effect, so it is refused."""


class StateEncryption(StrEnum):
    """Whether states are encrypted."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class StateSigning(StrEnum):
    """How states are signed: by KMS, or by a key in memory that KMS has certified."""

    DIRECT = "direct"
    DELEGATED = "delegated"


class AwsClientKind(StrEnum):
    """How AWS is called on the path of a request: with requests signed here, or with boto3."""

    SIGNED = "signed"
    BOTO3 = "boto3"


class Traces(StrEnum):
    """Whether spans are made."""

    OFF = "off"
    ON = "on"


class TokenType(StrEnum):
    """The `typ` that access tokens must have: any usual one, or that of RFC 9068."""

    ANY = "any"
    AT_JWT = "at+jwt"


class IamPrincipal(StrEnum):
    """Whether the role or the session identifies a caller with the credentials of a role."""

    ROLE = "role"
    SESSION = "session"


class AuditMode(StrEnum):
    """How audit records identify callers: by their subject, or by a keyed hash of it."""

    PRINCIPAL = "principal"
    HASH = "hash"


class Audit(Struct, frozen=True):
    """How audit records identify callers, and the log group that stores them."""

    mode: AuditMode
    log_group: str


class Settings(Struct, frozen=True):
    """The settings of a deployment. Each is the environment variable `MCP_` and the field in upper case.

    Raises SettingsError for settings that contradict each other. Not a pydantic model, because building one
    would take longer at a cold start than everything it could validate here.
    """

    auth_mode: AuthMode
    """Required, unless `MCP_TOKEN_ISSUER` is set: then it is `bearer`."""
    principal_context_key: str = "principalId"
    """With `lambda`: the member of the authorizer context that identifies the caller."""
    scope_context_key: str | None = None
    """With `lambda`: the member of the authorizer context that holds the scopes, separated by spaces."""
    token_issuer: str | None = None
    """The `iss` of access tokens. With `jwt` and `lambda` it is only shown to clients."""
    token_jwks_uri: str | None = None
    """With `bearer`: the URL of the issuer's keys, if its metadata does not have it."""
    token_algorithms: tuple[str, ...] = ("RS256", "ES256")
    """With `bearer`: the accepted signature algorithms, comma-separated."""
    token_type: TokenType = TokenType.ANY
    """With `bearer`: the accepted `typ`; `at+jwt` refuses the issuer's other tokens."""
    token_audience: tuple[str, ...] = ()
    """With `bearer`: the accepted `aud`, comma-separated, if the issuer cannot write the endpoint's URI."""
    scope_prefix: str = ""
    """What the issuer puts before the names of scopes; `{audience}` in it is the endpoint's URI."""
    iam_principal: IamPrincipal = IamPrincipal.ROLE
    """With `iam`: whether the sessions of a role are one caller."""
    issuer: str | None = None
    """The issuer of states: the same for all functions behind one endpoint. By default it is the audience."""
    audience: str | None = None
    """The endpoint's canonical URI (RFC 8707): the same for all functions behind it.

    Without it and without a table of tasks, each request has the audience that its event tells
    (`adapters.endpoint_uri`).
    """
    state_key_arn: str | None = None
    """The KMS key (ECC_NIST_P256) that signs states."""
    trusted_state_key_arns: tuple[str, ...] = ()
    """More keys whose states are accepted, comma-separated: the next and the previous key in a rotation."""
    state_public_keys: Mapping[str, bytes] = field(default_factory=dict)
    """Key id -> public key (SubjectPublicKeyInfo), as `<key id>:<Base64>`, comma-separated.

    With it, no public key is fetched from KMS.
    """
    state_signing: StateSigning = StateSigning.DIRECT
    revoked_certificates: frozenset[str] = frozenset()
    """The `jti` of revoked certificates, comma-separated."""
    state_encryption: StateEncryption = StateEncryption.ENABLED
    """Whether states are encrypted; if so, states that are not encrypted are refused."""
    state_encryption_key_arn: str | None = None
    """The KMS key (HMAC_256) that epoch keys are derived from."""
    trusted_state_encryption_key_arns: tuple[str, ...] = ()
    """More keys whose states are decrypted, comma-separated."""
    aws_client: AwsClientKind = AwsClientKind.SIGNED
    """Whether AWS may be called without boto3, whose import takes longer than a call."""
    allowed_origins: frozenset[str] = frozenset()
    """The origins of browsers that may call, comma-separated."""
    owners: Mapping[str, str] | str | None = None
    """On the front door: a JSON object, owner -> function name or ARN; or a name or ARN with * for it."""
    task_table: str | None = None
    """The DynamoDB table of tasks."""
    task_worker: str | None = None
    """The worker function's ARN with its version, or the URL of its queue."""
    task_wake_queue: str | None = None
    """On workers that are functions: the URL of the queue that wakes sleeping tasks; without it, polls do."""
    task_lease_s: int = 60
    """How long a worker's lease lasts without a renewal, and how long a lost worker can stay unnoticed."""
    max_open_tasks: int = 10
    """Open tasks that one principal may have; 0 is no limit. All anonymous callers are one principal."""
    max_rounds: int = 9
    """InputRequiredResults that one call may get. The clients of the SDKs stop after ten."""
    round_ttl_s: int = 600
    flow_ttl_s: int = 3_600
    max_body_bytes: int = MAX_BODY_BYTES
    """Limit of a request body."""
    max_json_values: int = MAX_JSON_VALUES
    """Limit of JSON values in a request body. The memory and time of a request grow with them."""
    audit: Audit | None = None
    """How audit records identify callers, and their log group: `principal:<group>` or `hash:<group>`.

    With `hash`, the KMS key `alias/<issuer>-audit` derives the key of the hashes: it needs `MCP_ISSUER`.
    """
    traces: Traces = Traces.OFF
    """Whether requests and tasks are traced; by default, if a layer such as ADOT starts the function."""
    server_card: str | None = None
    """The name in the Server Card, such as `com.example/weather`; without it, no card is served."""

    def __post_init__(self) -> None:
        self._check_authorization()
        if self.audit is not None and self.audit.mode is AuditMode.HASH:
            self.required("issuer")
        has_encryption_keys = self.state_encryption_key_arn or self.trusted_state_encryption_key_arns
        if self.state_encryption is StateEncryption.DISABLED and has_encryption_keys:
            raise SettingsError(
                "MCP_STATE_ENCRYPTION", "is disabled, and there are keys to encrypt with; remove one of them"
            )
        is_delegated = self.state_signing is StateSigning.DELEGATED
        if self.round_ttl_s > (most := MAX_DELEGATED_TTL_S if is_delegated else MAX_ROUND_TTL_S):
            problem = f"must be at most {most} with MCP_STATE_SIGNING {self.state_signing}"
            raise SettingsError("MCP_ROUND_TTL_S", problem)

    def _check_authorization(self) -> None:
        for name, modes in _MODES_OF.items():
            if self.auth_mode not in modes and getattr(self, name) != DEFAULTS[name]:
                problem = (
                    f"is set, and MCP_AUTH_MODE is {self.auth_mode}; remove it, or use {' and '.join(modes)}"
                )
                raise SettingsError(PREFIX + name.upper(), problem)
        if self.auth_mode is AuthMode.BEARER:
            self.required("token_issuer")
        if self.token_issuer is None or self.derives_audience:
            return
        # The URL of the protected resource metadata is derived from the audience.
        if not re.fullmatch(ISSUER, self.required("audience")):
            raise SettingsError("MCP_AUDIENCE", "must be an https URL without a query and a fragment")

    @property
    def derives_audience(self) -> bool:
        """Whether each request has the audience that its event tells.

        Not with a table: tasks outlive their requests, and links to the question page begin with it.
        """
        return self.audience is None and self.task_table is None

    @property
    def needs_audience(self) -> bool:
        """Whether no request can be served without the audience: callers or metadata depend on it."""
        return self.token_issuer is not None or "{" in self.scope_prefix

    @property
    def state_issuer(self) -> str:
        """The issuer of states. Raises SettingsError if neither it nor the audience is set."""
        return self.issuer or self.required("audience")

    def required(self, name: str) -> str:
        """Return an optional setting that is needed now. Raises SettingsError if it is not set."""
        value = getattr(self, name)
        if not value:
            raise self.missing(name)
        return str(value)

    def missing(self, name: str) -> SettingsError:
        """Return the error for an optional setting that is needed now."""
        if name == "audience" and self.derives_audience:
            problem = "is not set, and this event does not tell it; set it to the URI that clients use"
        else:
            problem = "is not set; set it in the function's environment"
        return SettingsError(PREFIX + name.upper(), problem)

    def key_arns(self, *names: str) -> tuple[str, ...]:
        """Return the ARNs of the KMS keys in these settings. Raises SettingsError for anything else."""
        arns: list[str] = []
        for name in names:
            value: str | tuple[str, ...] | None = getattr(self, name)
            given = (value,) if isinstance(value, str) else value or ()
            if not all(re.fullmatch(_KEY_ARN, each) for each in given):
                raise SettingsError(PREFIX + name.upper(), "must be the ARN of a KMS key, and not an alias")
            arns += given
        return tuple(arns)


# The first setting, the mode, is required.
DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    dict(zip(Settings.__struct_fields__[1:], Settings.__struct_defaults__, strict=True))
)
"""Setting -> its default."""
