"""The texts of settings: the variables that hold them, and what they must look like."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip.protocol.canonical import parse_json

PREFIX: Final = "MCP_"

SHARED: Final = "MCP_SETTINGS"
"""The variable with the settings that the functions of a deployment share: lines `MCP_NAME=value`."""

SAM_LOCAL: Final = "AWS_SAM_LOCAL"
"""The variable that `sam local` sets."""

SAM_LOCAL_SETTINGS: Final = """
MCP_AUTH_MODE=none
MCP_ISSUER=sam-local
MCP_AUDIENCE=http://127.0.0.1:3000/mcp
"""

# Keys fetched without TLS cannot be trusted, except from a development issuer on the same computer.
ISSUER: Final = r"(https://[^/?#\s@]+|http://(127\.0\.0\.1|localhost)(:\d+)?)(/[^?#\s]*)?"
_URL_PROBLEM: Final = "must be an https URL without a fragment, and an issuer's without a query"

FORMATS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "token_issuer": (ISSUER, _URL_PROBLEM),
        "token_jwks_uri": (ISSUER + r"(\?[^#\s]*)?", _URL_PROBLEM),
        "token_algorithms": (
            r"EdDSA|(ES|PS|RS)(256|384|512)",
            "must be among ES256, ES384, ES512, EdDSA, PS256, PS384, PS512, RS256, RS384, RS512",
        ),
        # RFC 6749 §3.3.
        "scope_prefix": (
            r"[\x21\x23-\x5b\x5d-\x7e]*",
            "must be the start of a scope, without spaces and quotes",
        ),
        "state_public_keys": (r"[^:]+:.+", "must hold <key id>:<Base64>, comma-separated"),
        "revoked_certificates": (r"[0-9a-f]{32}", "must hold 32 lower-case hexadecimal digits for each"),
        # As browsers send it (RFC 6454 §6.2). One with a slash at the end, or "*", would match no browser.
        "allowed_origins": (r"[a-z][a-z0-9+.-]*://[^\s/?#*]+", "must be origins such as https://app.example"),
        # The characters of a function's name or ARN with an alias or $LATEST; * is the owner.
        "owners": (
            r"(?s:\{.*)|[A-Za-z0-9:$_-]*\*[A-Za-z0-9:$_-]*",
            "must be a JSON object with one function name or ARN for each owner, or a function's name or ARN "
            "with one * in it",
        ),
        "task_worker": (
            r"arn:[a-z-]+:lambda:.+|https?://.+",
            "must be the ARN of a Lambda function or the URL of a queue",
        ),
        "task_queue": (r"https?://.+", "must be the URL of a queue"),
        # The API Reference of CloudWatch Logs, `logGroupName`.
        "audit": (
            r"(principal|hash):[\w./#-]{1,512}",
            "must be principal or hash, a colon, and the name of a log group",
        ),
        # SEP-2127, `ServerCard.name`: 200 characters.
        "server_card": (
            r"(?=.{1,200}$)[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+",
            "must be a reverse domain name, a slash and a name, such as com.example/weather",
        ),
    }
)
"""Setting -> the pattern of its text or of each item of its list, and what the error says.

Not `Meta(pattern=...)`, with which msgspec would compile all of them at every cold start.
"""


def read_variables(environment: Mapping[str, str], known: Collection[str] = ()) -> dict[str, str]:
    """Return the known variables that are set, or all of them, without white space around their texts.

    A variable of its own replaces its line in `MCP_SETTINGS`; an empty one unsets it. Raises SettingsError
    for a line that is not `NAME=value`, and for a name in the lines that is not known or is there twice.
    """
    texts: dict[str, str] = {}
    for number, line in enumerate(_shared(environment).split("\n"), 1):
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
    return {name: text for name, text in texts.items() if text}


def _shared(environment: Mapping[str, str]) -> str:
    """Return the lines of `MCP_SETTINGS`.

    sam local passes an empty text for an output of a nested stack (`!GetAtt`), and with `!Sub` the reference
    itself. CloudFormation never does: it resolves the reference, or fails the deployment.
    """
    text = environment.get(SHARED)
    if text is None:
        return ""
    if SAM_LOCAL in environment and "=" not in text:
        return SAM_LOCAL_SETTINGS
    if not text.strip():
        raise SettingsError(SHARED, "is empty; set it to the output Settings of the platform, or remove it")
    return text


def read_value(name: str, text: str, defaults: Mapping[str, Any]) -> Any:
    """Split lists and pairs, and read numbers and objects: what is left to check are types and bounds.

    The type of a setting's default says whether it is a list or a number. Raises SettingsError.
    """
    is_list = isinstance(defaults.get(name), tuple | frozenset) or name == "state_public_keys"
    items = [each for item in text.split(",") if (each := item.strip())] if is_list else [text]
    if name in FORMATS and not all(re.fullmatch(FORMATS[name][0], each) for each in items):
        raise SettingsError(PREFIX + name.upper(), FORMATS[name][1])
    if name == "state_public_keys":
        return dict(each.split(":", 1) for each in items)
    if name == "audit":
        return dict(zip(("mode", "log_group"), text.split(":"), strict=True))
    if name == "owners" and text.startswith("{"):
        try:
            return parse_json(text)
        except ValueError as error:
            problem = f"must be a JSON object from owners to functions ({error})"
            raise SettingsError("MCP_OWNERS", problem) from None
    if isinstance(defaults.get(name), int) and text.isdecimal() and len(text) < 10:
        return int(text)
    return items if is_list else text
