"""The settings of a deployment, and what the text of each must be."""

# Annotations are not postponed: msgspec would evaluate each text again, half a millisecond of a cold start.

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from msgspec import Meta, Struct, ValidationError, convert, field

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.deployment.variables import FORMATS, ISSUER, PREFIX, read_value, read_variables
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.protocol.http import MAX_BODY_BYTES, MAX_EVENT_BYTES, MAX_JSON_VALUES

ADOT_WRAPPER: Final = "/opt/otel-instrument"
"""The script of an OpenTelemetry layer for Python that starts the function."""

MAX_ROUND_TTL_S: Final = 3_600
"""One epoch, so that a state can be encrypted with the key of one of two epochs only."""

MAX_DELEGATED_TTL_S: Final = 1_200
"""With delegated signing, a certificate of 1,800 s must outlast the states that it certifies."""

_MAX_COUNT: Final = 10**9 - 1

_Count = Annotated[int, Meta(ge=1, le=_MAX_COUNT)]

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


class Audit(Struct, frozen=True):
    """How audit records identify callers (by subject, or by a keyed hash of it), and their log group."""

    mode: Literal["principal", "hash"]
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
    token_type: Literal["any", "at+jwt"] = "any"  # noqa: S105 - no secret
    """With `bearer`: the accepted `typ`; `at+jwt` refuses the issuer's other tokens."""
    token_audience: tuple[str, ...] = ()
    """With `bearer`: the accepted `aud`, comma-separated, if the issuer cannot write the endpoint's URI."""
    scope_prefix: str = ""
    """What the issuer puts before the names of scopes; `{audience}` in it is the endpoint's URI."""
    iam_principal: Literal["role", "session"] = "role"
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
    state_signing: Literal["direct", "delegated"] = "direct"
    revoked_certificates: frozenset[str] = frozenset()
    """The `jti` of revoked certificates, comma-separated."""
    state_encryption: Literal["enabled", "disabled"] = "enabled"
    """Whether states are encrypted; if so, states that are not encrypted are refused."""
    state_encryption_key_arn: str | None = None
    """The KMS key (HMAC_256) that epoch keys are derived from."""
    trusted_state_encryption_key_arns: tuple[str, ...] = ()
    """More keys whose states are decrypted, comma-separated."""
    aws_client: Literal["signed", "boto3"] = "signed"
    """Whether AWS is called without boto3, whose import takes longer than a call, or with it.

    `signed` is for the Regions of the partition `aws`, without proxies, profiles, FIPS and dual stack.
    """
    allowed_origins: frozenset[str] = frozenset()
    """The origins of browsers that may call, comma-separated."""
    owners: Mapping[str, str] | str | None = None
    """On the front door: a JSON object, owner -> function name or ARN; or a name or ARN with * for it."""
    task_table: str | None = None
    """The DynamoDB table of tasks."""
    task_worker: str | None = None
    """On functions with tasks: the worker function's ARN with its version, or the URL of a queue."""
    task_queue: str | None = None
    """On these and their workers: the URL of the worker's queue, which wakes sleeping tasks; or polls do."""
    task_delivery: Literal["invoke", "queue"] = "invoke"
    """Whether a new task is dispatched to the worker function or to its queue."""
    task_lease_s: Annotated[int, Meta(ge=15, le=900)] = 60
    """How long a worker's lease lasts without a renewal, and how long a lost worker can stay unnoticed.

    A lease is renewed after a third of it, and a request to DynamoDB may take ten seconds with its retries.
    Lambda's longest timeout is 900 s.
    """
    max_open_tasks: Annotated[int, Meta(ge=0, le=100)] = 10
    """Open tasks that one principal may have; 0 is no limit. All anonymous callers are one principal.

    A call over the limit reads each of them, one after the other.
    """
    max_rounds: _Count = 9
    """InputRequiredResults that one call may get. The clients of the SDKs stop after ten."""
    round_ttl_s: _Count = 600
    flow_ttl_s: _Count = 3_600
    max_body_bytes: Annotated[int, Meta(ge=1, le=MAX_EVENT_BYTES)] = MAX_BODY_BYTES
    """Limit of a request body."""
    max_json_values: _Count = MAX_JSON_VALUES
    """Limit of JSON values in a request body. The memory and time of a request grow with them."""
    audit: Audit | None = None
    """How audit records identify callers, and their log group: `principal:<group>` or `hash:<group>`.

    With `hash`, the KMS key `alias/<issuer>-audit` derives the key of the hashes: it needs `MCP_ISSUER`.
    """
    traces: Literal["off", "on"] = "off"
    """Whether requests and tasks are traced; by default, if a layer such as ADOT starts the function."""
    server_card: str | None = None
    """The name in the Server Card, such as `com.example/weather`; without it, no card is served."""

    def __post_init__(self) -> None:
        self._check_authorization()
        if self.task_worker is not None:
            self.worker_address()
        if self.audit is not None and self.audit.mode == "hash":
            self.required("issuer")
        has_encryption_keys = self.state_encryption_key_arn or self.trusted_state_encryption_key_arns
        if self.state_encryption == "disabled" and has_encryption_keys:
            raise SettingsError(
                "MCP_STATE_ENCRYPTION", "is disabled, and there are keys to encrypt with; remove one of them"
            )
        is_delegated = self.state_signing == "delegated"
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
    def unset(self) -> frozenset[str]:
        """The settings that features may need, and that have no value."""
        names = {"state_key_arn", "owners", "task_table"}
        if self.task_delivery == "invoke":
            names.add("task_worker")
        if self.task_delivery == "queue" or self.task_worker is None:  # as in a worker function
            names.add("task_queue")
        if self.state_encryption == "enabled":
            names.add("state_encryption_key_arn")
        if not self.derives_audience:
            names.add("audience")
        if self.auth_mode is AuthMode.LAMBDA:
            names.add("scope_context_key")
        return frozenset(name for name in names if not getattr(self, name))

    @property
    def needs_audience(self) -> bool:
        """Whether no request can be served without the audience: callers or metadata depend on it."""
        return self.token_issuer is not None or "{" in self.scope_prefix

    @property
    def state_issuer(self) -> str:
        """The issuer of states. Raises SettingsError if neither it nor the audience is set."""
        return self.issuer or self.required("audience")

    def worker_address(self) -> str:
        """Return where new tasks are dispatched. Raises SettingsError if that is not set."""
        return self.required("task_queue" if self.task_delivery == "queue" else "task_worker")

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


_BOTO3_VARIABLES: Final = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"),
    *("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_CONFIG_FILE", "AWS_ACCOUNT_ID_ENDPOINT_MODE"),
    *("AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"),
)
"""Variables that change how an SDK calls AWS, and that the client `signed` does not have."""

_WITHOUT_EFFECT: Final = frozenset({"", "false", "preferred", "disabled", "/dev/null"})
"""Values of these variables with which an SDK calls AWS as without them."""

DEFAULTS: Final[Mapping[str, Any]] = MappingProxyType(
    dict(zip(Settings.__struct_fields__[1:], Settings.__struct_defaults__, strict=True))
)
"""Setting -> its default. The first setting, the mode, has none."""

VARIABLES: Final = MappingProxyType({PREFIX + name.upper(): name for name in Settings.__struct_fields__})
"""Variable -> setting."""


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises SettingsError that names the first variable that is missing or wrong."""
    texts = read_variables(environment, VARIABLES)
    values = {
        VARIABLES[variable]: read_value(VARIABLES[variable], text, DEFAULTS)
        for variable, text in texts.items()
    }
    values = {name: value for name, value in values.items() if value != []}  # without items, it is not set
    if "auth_mode" not in values:
        if "token_issuer" not in values:
            problem = (
                f"must be one of {', '.join(AuthMode)}; it has a default only with MCP_TOKEN_ISSUER: bearer"
            )
            raise SettingsError("MCP_AUTH_MODE", problem)
        values["auth_mode"] = AuthMode.BEARER
    if environment.get("AWS_LAMBDA_EXEC_WRAPPER") == ADOT_WRAPPER:
        values.setdefault("traces", "on")
    try:
        settings = convert(values, Settings)
    except ValidationError as error:
        # The path is last; a value before it may look like one.
        name = re.findall(r"\w+", str(error).rpartition("$.")[2])[0]
        raise SettingsError(PREFIX + name.upper(), _problem(name)) from None
    if settings.aws_client == "signed":
        _check_signed_client(environment)
    return settings


def _check_signed_client(environment: Mapping[str, str]) -> None:
    """Raise SettingsError if AWS has to be called in a way that only boto3 knows.

    The partition `aws` has the Regions with three parts, except for those in China.
    """
    for name in _BOTO3_VARIABLES:
        if environment.get(name, "").lower() not in _WITHOUT_EFFECT:
            raise SettingsError("MCP_AWS_CLIENT", f"must be boto3 with {name}; set it, or remove {name}")
    region = environment.get("AWS_DEFAULT_REGION", "")
    parts = region.split("-")
    is_commercial = len(parts) == 3 and parts[0] != "cn" and parts[2].isdecimal()
    if region and not is_commercial and not any(name.startswith("AWS_ENDPOINT_URL") for name in environment):
        problem = f"must be boto3 in the Region {region:.100}, which is not one of the partition aws; set it"
        raise SettingsError("MCP_AWS_CLIENT", problem)


def _problem(name: str) -> str:
    """Return what the error says about the value of a setting, from its format or its type."""
    if name in FORMATS:
        return FORMATS[name][1]
    declared = get_type_hints(Settings, include_extras=True)[name]
    choices = get_args(declared) or tuple(declared)
    if not isinstance(bounds := choices[-1], Meta):
        return f"must be one of {', '.join(choices)}"
    limits = f"of at least {bounds.ge}" if bounds.le == _MAX_COUNT else f"from {bounds.ge} to {bounds.le}"
    return f"must be a whole number {limits}"
