"""The settings of a deployment: lines of `MCP_SETTINGS` and variables of their own, which take precedence."""

# Annotations are not postponed: msgspec would evaluate each text again, half a millisecond of a cold start.

import re
from collections.abc import Collection, Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import force_setattr

from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.protocol.http import MAX_BODY_BYTES, MAX_EVENT_BYTES, MAX_JSON_VALUES
from mcp_roundtrip.protocol.strict_json import parse_json

PREFIX: Final = "MCP_"

SHARED: Final = "MCP_SETTINGS"
"""The variable with the settings that the functions of a deployment share: lines `MCP_NAME=value`."""

_SAM_LOCAL: Final = "MCP_AUTH_MODE=none\nMCP_ISSUER=sam-local\nMCP_AUDIENCE=http://127.0.0.1:3000/mcp"

ADOT_WRAPPER: Final = "/opt/otel-instrument"
"""The script of an OpenTelemetry layer for Python that starts the function."""

# A state lasts at most one epoch, so that one of two keys encrypted it; a certificate of 1,800 s outlasts it.
_MAX_ROUND_TTL_S: Final[Mapping[str, int]] = {"direct": 3_600, "delegated": 1_200}

_MAX_COUNT: Final = 10**9 - 1


def _number(least: int, most: int = _MAX_COUNT) -> Meta:
    """Return the bounds of a setting. Its description is what the error says."""
    bounds = f"of at least {least}" if most == _MAX_COUNT else f"from {least} to {most}"
    return Meta(ge=least, le=most, description=f"must be a whole number {bounds}")


def _text(pattern: str, problem: str) -> Meta:
    """Return the pattern of a text, or of each item of a list, and what the error says.

    With `Meta(pattern=...)`, msgspec would compile all patterns at every cold start.
    """
    return Meta(description=problem, extra={"pattern": pattern})


# Keys fetched without TLS cannot be trusted, except from a development issuer on the same computer.
_ISSUER: Final = r"(https://[^/?#\s@]+|http://(127\.0\.0\.1|localhost)(:\d+)?)(/[^?#\s]*)?"
_URL_PROBLEM: Final = "must be an https URL without a fragment, and an issuer's without a query"


class Audit(Struct, frozen=True):
    """How audit records identify callers (by subject, or by a keyed hash of it), and their log group."""

    mode: Literal["principal", "hash"]
    log_group: str


_SETTINGS_OF_MODES: Final[Mapping[tuple[AuthMode, ...], tuple[str, ...]]] = {
    (AuthMode.LAMBDA,): ("principal_context_key", "scope_context_key"),
    (AuthMode.BEARER, AuthMode.JWT, AuthMode.LAMBDA): ("token_issuer", "scope_prefix"),
    (AuthMode.BEARER,): ("token_jwks_uri", "token_algorithms", "token_type", "token_audience"),
    (AuthMode.IAM,): ("iam_principal",),
}
"""Modes -> settings that are refused with any other mode, in which they have no effect."""


class Settings(Struct, frozen=True, rename=lambda name: PREFIX + name.upper()):
    """The settings of a deployment. Each is the environment variable `MCP_` and the field in upper case.

    docs/reference/settings.md explains each. Raises SettingsError for contradictions.
    """

    auth_mode: AuthMode
    """Required, unless `MCP_TOKEN_ISSUER` is set: then it is `bearer`."""
    principal_context_key: str = "principalId"
    scope_context_key: str | None = None
    token_issuer: Annotated[str | None, _text(_ISSUER, _URL_PROBLEM)] = None
    token_jwks_uri: Annotated[str | None, _text(_ISSUER + r"(\?[^#\s]*)?", _URL_PROBLEM)] = None
    token_algorithms: Annotated[
        tuple[str, ...],
        _text(
            r"EdDSA|(ES|PS|RS)(256|384|512)",
            "must be among ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512",
        ),
    ] = ("RS256", "ES256")
    token_type: Literal["any", "at+jwt"] = "any"  # noqa: S105 - no secret
    token_audience: tuple[str, ...] = ()
    scope_prefix: Annotated[
        str,  # RFC 6749 §3.3
        _text(r"[\x21\x23-\x5b\x5d-\x7e]*", "must be the start of a scope, without spaces and quotes"),
    ] = ""
    iam_principal: Literal["role", "session"] = "role"
    issuer: str | None = None
    audience: str | None = None
    """The endpoint's canonical URI (RFC 8707): the same for all functions behind it."""
    state_key_arn: str | None = None
    trusted_state_key_arns: tuple[str, ...] = ()
    state_public_keys: Annotated[
        Mapping[str, bytes], _text("[^:]+:.+", "must hold <key id>:<Base64>, comma-separated")
    ] = {}
    """Key id -> public key (SubjectPublicKeyInfo). With it, no public key is fetched from KMS."""
    state_signing: Literal["direct", "delegated"] = "direct"
    revoked_certificates: Annotated[
        frozenset[str], _text("[0-9a-f]{32}", "must hold 32 lower-case hexadecimal digits for each")
    ] = frozenset()
    state_encryption: Literal["enabled", "disabled"] = "enabled"
    """Whether states are encrypted; if so, states that are not encrypted are refused."""
    state_encryption_key_arn: str | None = None
    trusted_state_encryption_key_arns: tuple[str, ...] = ()
    aws_client: Literal["signed", "boto3"] = "signed"
    allowed_origins: Annotated[
        # As browsers send it (RFC 6454 §6.2). One with a slash at the end, or "*", would match no browser.
        frozenset[str],
        _text(r"[a-z][a-z0-9+.-]*://[^\s/?#*]+", "must be origins such as https://app.example"),
    ] = frozenset()
    owners: Annotated[
        # The characters of a function's name or ARN with an alias or $LATEST.
        Mapping[str, str] | str | None,
        _text(
            r"(?s:\{.*)|[A-Za-z0-9:$_-]*\*[A-Za-z0-9:$_-]*",
            "must be a JSON object with one function name or ARN for each owner, or a function's name or ARN "
            "with one * in it",
        ),
    ] = None
    task_table: str | None = None
    task_worker: Annotated[
        str | None,
        _text(
            r"arn:[a-z-]+:lambda:.+|https?://.+",
            "must be the ARN of a Lambda function or the URL of a queue",
        ),
    ] = None
    task_queue: Annotated[str | None, _text("https?://.+", "must be the URL of a queue")] = None
    task_delivery: Literal["invoke", "queue"] = "invoke"
    task_lease_s: Annotated[int, _number(15, 900)] = 60
    """A lease is renewed after a third of it; a request to DynamoDB, with its retries, takes up to 10 s."""
    max_open_tasks: Annotated[int, _number(0, 100)] = 10
    """Open tasks of one principal; 0 is no limit. A call over it reads each of them, one after the other."""
    max_rounds: Annotated[int, _number(1)] = 9
    """InputRequiredResults that one call may get. The clients of the SDKs stop after ten."""
    round_ttl_s: Annotated[int, _number(1)] = 600
    flow_ttl_s: Annotated[int, _number(1)] = 3_600
    max_body_bytes: Annotated[int, _number(1, MAX_EVENT_BYTES)] = MAX_BODY_BYTES
    max_json_values: Annotated[int, _number(1)] = MAX_JSON_VALUES
    audit: Annotated[
        Audit | None,
        # The API Reference of CloudWatch Logs, `logGroupName`.
        _text(
            r"(principal|hash):[\w./#-]{1,512}",
            "must be principal or hash, a colon, and the name of a log group",
        ),
    ] = None
    traces: Literal["off", "on"] = "off"
    server_card: Annotated[
        str | None,  # SEP-2127, `ServerCard.name`: 200 characters
        _text(
            r"(?=.{1,200}$)[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+",
            "must be a reverse domain name, a slash and a name, such as com.example/weather",
        ),
    ] = None

    def __post_init__(self) -> None:
        self._check_authorization()
        if "{" in self.scope_prefix and not self.derives_audience:
            prefix = self.scope_prefix.replace("{audience}", self.required("audience"))
            force_setattr(self, "scope_prefix", prefix)
        if self.task_worker is not None:
            self.worker_address()
        if self.audit is not None and self.audit.mode == "hash":
            self.required("issuer")
        has_encryption_keys = self.state_encryption_key_arn or self.trusted_state_encryption_key_arns
        if self.state_encryption == "disabled" and has_encryption_keys:
            raise SettingsError(
                "MCP_STATE_ENCRYPTION", "is disabled, and there are keys to encrypt with; remove one of them"
            )
        if self.round_ttl_s > (most := _MAX_ROUND_TTL_S[self.state_signing]):
            problem = f"must be at most {most} with MCP_STATE_SIGNING {self.state_signing}"
            raise SettingsError("MCP_ROUND_TTL_S", problem)

    def _check_authorization(self) -> None:
        for modes, names in _SETTINGS_OF_MODES.items():
            for name in names if self.auth_mode not in modes else ():
                if getattr(self, name) != DEFAULTS[name]:
                    problem = f"is set, and MCP_AUTH_MODE is {self.auth_mode}; remove it, or use "
                    raise SettingsError(PREFIX + name.upper(), problem + " and ".join(modes))
        if self.auth_mode is AuthMode.BEARER:
            self.required("token_issuer")
        if self.derives_audience:
            return
        # The URL of the protected resource metadata is derived from the audience.
        if self.token_issuer is not None and not re.fullmatch(_ISSUER, self.required("audience")):
            raise SettingsError("MCP_AUDIENCE", "must be an https URL without a query and a fragment")

    @property
    def derives_audience(self) -> bool:
        """Whether a request's audience is that of its event: not with tasks, which outlive their requests."""
        return self.audience is None and self.task_table is None

    @property
    def needs_audience(self) -> bool:
        """Whether callers or metadata depend on the audience, so that no request can be served without it."""
        return self.token_issuer is not None or "{" in self.scope_prefix

    @property
    def state_issuer(self) -> str:
        """The issuer of states. Raises SettingsError if neither it nor the audience is set."""
        return self.issuer or self.required("audience")

    def worker_address(self) -> str:
        """Return the address to which new tasks are dispatched. Raises SettingsError if it is not set."""
        return self.required("task_queue" if self.task_delivery == "queue" else "task_worker")

    def required(self, name: str) -> str:
        """Return an optional setting. Raises SettingsError if it is not set."""
        value = getattr(self, name)
        if not value:
            raise self.missing(name)
        return str(value)

    def missing(self, name: str) -> SettingsError:
        problem = "is not set; set it in the function's environment"
        if name == "audience" and self.derives_audience:
            problem = "is not set, and this event does not tell it; set it to the URI that clients use"
        return SettingsError(PREFIX + name.upper(), problem)


VARIABLES: Final[Mapping[str, str]] = {PREFIX + name.upper(): name for name in Settings.__struct_fields__}

_OPTIONAL: Final = Settings.__struct_fields__[1:]  # the first one is the mode
DEFAULTS: Final[Mapping[str, Any]] = dict(zip(_OPTIONAL, Settings.__struct_defaults__, strict=True))


def load_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings. Raises SettingsError that names the first variable that is missing or wrong."""
    texts = read_variables(environment, VARIABLES)
    values = {name: value for name, text in texts.items() if (value := _read_value(name, text)) != []}
    if "MCP_AUTH_MODE" not in values:
        if "MCP_TOKEN_ISSUER" not in values:
            where = "in MCP_SETTINGS, the output Settings of the nested stack Platform"
            default = "has a default only with MCP_TOKEN_ISSUER: bearer"
            raise _wrong("MCP_AUTH_MODE", f"; it is {where}, and {default}")
        values["MCP_AUTH_MODE"] = AuthMode.BEARER
    if environment.get("AWS_LAMBDA_EXEC_WRAPPER") == ADOT_WRAPPER:
        values.setdefault("MCP_TRACES", "on")
    try:
        return convert(values, Settings)
    except ValidationError as error:
        # The path is last; a value before it may look like one.
        variable = re.findall(r"\w+", str(error).rpartition("$.")[2])[0]
        raise _wrong(variable) from None


def read_variables(environment: Mapping[str, str], known: Collection[str] = ()) -> dict[str, str]:
    """Return the variables that are set, or the known ones of them, without white space around their texts.

    A separate variable replaces its line in `MCP_SETTINGS`; an empty one unsets it. Raises SettingsError for
    a line that is not `NAME=value`, and for an unknown or repeated name in the lines.
    """
    texts: dict[str, str] = {}
    for number, line in enumerate(_shared_lines(environment), 1):
        name, separator, text = (part.strip() for part in line.partition("="))
        if not separator:
            if name:
                raise SettingsError(SHARED, f"must hold lines such as MCP_ISSUER=shop; line {number} is none")
        elif known and name not in known:
            problem = (
                f"names {name}, which this version of the package does not have; check the name, or run "
                "`mcp-roundtrip upgrade` if the platform has another version than the package"
            )
            raise SettingsError(SHARED, problem)
        elif name in texts:
            raise SettingsError(SHARED, f"names {name} twice; remove one of the lines")
        else:
            texts[name] = text
    texts |= {name: environment[name].strip() for name in known or environment if name in environment}
    # Of `!Ref Worker.Version`, sam local passes the text.
    if "AWS_SAM_LOCAL" in environment and re.fullmatch(r"\w+\.Version", texts.get("MCP_TASK_WORKER", "")):
        del texts["MCP_TASK_WORKER"]
    return {name: text for name, text in texts.items() if text}


def _shared_lines(environment: Mapping[str, str]) -> list[str]:
    text = environment.get(SHARED)
    if text is None:
        return []
    # For outputs of nested stacks, sam local passes an empty text or a reference. A deployment never does.
    if "AWS_SAM_LOCAL" in environment and "=" not in text:
        text = _SAM_LOCAL
    if not text.strip():
        raise SettingsError(SHARED, "is empty; set it to the output Settings of the platform, or remove it")
    return text.split("\n")


def _wrong(variable: str, more: str = "") -> SettingsError:
    declared: Any = Settings.__annotations__[VARIABLES[variable]]
    if metadata := getattr(declared, "__metadata__", ()):
        return SettingsError(variable, metadata[0].description)
    return SettingsError(variable, f"must be one of {', '.join(get_args(declared) or declared)}{more}")


def _read_value(variable: str, text: str) -> Any:
    """Split lists and pairs, and read numbers and objects, but check no types and bounds.

    The default of a setting says whether it is a list or a number. Raises SettingsError.
    """
    name = VARIABLES[variable]
    is_list = name == "state_public_keys" or isinstance(DEFAULTS.get(name), tuple | frozenset)
    items = [each for item in text.split(",") if (each := item.strip())] if is_list else [text]
    metadata = getattr(Settings.__annotations__[name], "__metadata__", ())
    patterns = [meta.extra["pattern"] for meta in metadata if meta.extra]
    if not all(re.fullmatch(pattern, each) for pattern in patterns for each in items):
        raise _wrong(variable)
    if name == "state_public_keys":
        return dict(each.split(":", 1) for each in items)
    if name == "audit":
        return dict(zip(("mode", "log_group"), text.split(":"), strict=True))
    if name == "owners" and text.startswith("{"):
        try:
            return parse_json(text)
        except ValueError as error:
            problem = f"must be a JSON object from owners to functions ({error})"
            raise SettingsError(variable, problem) from None
    if isinstance(DEFAULTS.get(name), int) and text.isdecimal() and len(text) < 10:
        return int(text)
    return items if is_list else text
