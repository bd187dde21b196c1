"""The HTTP headers that mirror the body of a request, and the `Mcp-Param-*` headers that mirror arguments.

Source: SEP-2243; Streamable HTTP, "Server Validation" and "Custom Headers from Tool Parameters".
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol.constants import (
    HEADER_METHOD,
    HEADER_NAME,
    HEADER_PROTOCOL_VERSION,
    META_PROTOCOL_VERSION,
    NAME_HEADER_REQUIRED,
    NAME_PARAMETER,
)
from mcp_roundtrip.protocol.jsonrpc import HEADER_MISMATCH, JsonRpcRequest
from mcp_roundtrip.protocol.strict_json import compact_json

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_ALLOWED: Final = re.compile(r"[\x20-\x7e\t]*")
_PLAIN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def check_headers(request: JsonRpcRequest, headers: Mapping[str, str], *, required: bool = True) -> None:
    """Raise -32020 unless the headers are present and equal the members of the body.

    The version is compared only if the body has one: `_meta` without a version is another error. Without
    `required`, as for clients that open with `initialize`, headers may be missing. A header that is sent has
    to be equal, because a proxy may have routed by it.
    """
    if required:
        _compare("MCP-Protocol-Version", headers.get(HEADER_PROTOCOL_VERSION), _body_version(request))
    if required or HEADER_METHOD in headers:
        _compare("Mcp-Method", headers.get(HEADER_METHOD), request.method)
    if request.method in NAME_PARAMETER:
        _check_name(request, headers.get(HEADER_NAME), required)


def _check_name(request: JsonRpcRequest, header: str | None, required: bool) -> None:
    if header is None:
        if required and request.method in NAME_HEADER_REQUIRED:
            raise mismatch("the Mcp-Name header is missing")
        return
    name = request.params.get(NAME_PARAMETER[request.method])
    decoded = decode_header(header)
    if decoded is None and "," not in header:
        raise mismatch("the Mcp-Name header has invalid characters or invalid Base64")
    if isinstance(name, str) and decoded != name:  # a name of another type is refused with -32602 later
        raise _difference("Mcp-Name", header, name)


def _compare(header: str, value: str | None, expected: str | None) -> None:
    if value is None:
        raise mismatch(f"the {header} header is missing")
    if expected is not None and value.strip(" \t") != expected:
        raise _difference(header, value, expected)


def _difference(header: str, value: str, expected: str) -> ProtocolError:
    """Return the error of a header that differs from the body.

    Gateways join the values of a repeated header with commas. Equal values are refused, too: the header is no
    list, and a proxy may have read one value only (RFC 9110 §5.3).
    """
    if "," in value and {decode_header(each) for each in value.split(",")} == {expected}:
        return mismatch(f"the {header} header occurs more than once")
    return mismatch(f"the {header} header does not match the body")


def _body_version(request: JsonRpcRequest) -> str | None:
    meta = request.params.get("_meta")
    version = meta.get(META_PROTOCOL_VERSION) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def mismatch(problem: str) -> ProtocolError:
    """Return -32020 with the problem, which must not quote a value."""
    return ProtocolError(HEADER_MISMATCH, f"Header mismatch: {problem}")


def decode_header(header: str) -> str | None:
    """Return the value of a header, without surrounding white space and with its Base64 form decoded.

    None for characters other than visible ASCII, space and tab, and for Base64 that is not canonical UTF-8.
    """
    value = header.strip(" \t")
    if _ALLOWED.fullmatch(value) is None:
        return None
    sentinel = _SENTINEL.fullmatch(value)
    if sentinel is None:
        return value
    try:
        raw = b64decode(sentinel[1], validate=True)
        # validate=True lets non-zero padding bits pass: two spellings of one name.
        return raw.decode("utf-8") if b64encode(raw).decode() == sentinel[1] else None
    except ValueError:
        return None


def encode_header(value: str) -> str:
    """Return the header for a value; `decode_header` returns the value again."""
    if _PLAIN.fullmatch(value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{b64encode(value.encode()).decode()}?="


ParameterHeaders = Mapping[tuple[str, ...], str]
"""Path of an argument -> the name of its header without the prefix `Mcp-Param-`."""

MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that intermediaries with doubles read exactly."""

# As in JSON, with an exponent that Decimal accepts. Doubles need three digits at most.
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?"

# FastMCP 4.2.3 and the Go SDK 1.7.0 send these headers only in calls of tools that they have listed.
_MISSING: Final = "is missing. Clients list the tools to know their headers"


def check_parameter_headers(
    parameter_headers: ParameterHeaders,
    arguments: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    required: bool = True,
) -> None:
    """Raise -32020 unless the headers (lower-case names) equal the arguments.

    Without `required`, as for clients that open with `initialize`, headers may be missing. An array or an
    object has no header; validation refuses it later.
    """
    for path, name in parameter_headers.items():
        header = headers.get(_header(name).lower())
        problem = _problem(argument_at(arguments, path), header)
        if problem is not None and (required or header is not None):
            raise mismatch(f"the {_header(name)} header {problem}")


def _problem(value: Any, header: str | None) -> str | None:
    if header is None:
        return _MISSING if isinstance(value, (str, int, float)) else None
    if value is None:
        return "has no counterpart in the arguments"
    decoded = decode_header(header)
    if decoded is None:
        return "has invalid characters or invalid Base64"
    if _is_number(value) and abs(value) > MAX_INTEGER:
        return f"cannot mirror an integer beyond {MAX_INTEGER}, because intermediaries round it"
    return None if _equals(decoded, value) else "does not match the body"


def _equals(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == compact_json(value)
    if not _is_number(value) or re.fullmatch(_NUMBER, text) is None:
        return False
    # As floats, 9007199254740990.9 and 9007199254740991 would be equal.
    return Decimal(text) == Decimal(str(value))


def argument_at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the argument at a path; None if it is absent, which the specification treats like null."""
    node: Any = arguments
    for name in path:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _header(name: str) -> str:
    return f"Mcp-Param-{name}"
