"""The `Mcp-Param-*` headers that mirror arguments of a tool (SEP-2243).

Source: Streamable HTTP, "Custom Headers from Tool Parameters" and "Server Validation".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.protocol.mirrored_headers import decode_header, encode_header, mismatch

ParameterHeaders = Mapping[tuple[str, ...], str]
"""Path of an argument -> the name of its header without the prefix `Mcp-Param-`."""

MAX_INTEGER: Final = 2**53 - 1
"""The largest integer that all intermediaries read exactly: many only have doubles."""

# As in JSON, with an exponent that Decimal accepts. Doubles need three digits at most.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


def check_parameter_headers(
    parameter_headers: ParameterHeaders,
    arguments: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    required: bool = True,
) -> None:
    """Raise ProtocolError -32020 unless the headers (lower-case names) equal the arguments.

    Without `required`, headers may be missing: clients that open with `initialize` do not send them. Headers
    that mirror no argument are ignored. An array or an object has no header; validation refuses it later.
    """
    for path, name in parameter_headers.items():
        header = headers.get(_header(name).lower())
        problem = _problem(_value(arguments, path), header)
        if problem is not None and (required or header is not None):
            raise mismatch(f"the {_header(name)} header {problem}")


def build_parameter_headers(
    parameter_headers: ParameterHeaders, arguments: Mapping[str, Any]
) -> dict[str, str]:
    """Return the headers that a client sends with a call, by lower-case name.

    Raises ValueError for a string with a lone surrogate.
    """
    values = {name: _value(arguments, path) for path, name in parameter_headers.items()}
    return {
        _header(name).lower(): encode_header(value if isinstance(value, str) else compact_json(value))
        for name, value in values.items()
        if _has_header(value)
    }


def _problem(value: Any, header: str | None) -> str | None:
    if header is None:
        return "is missing" if _has_header(value) else None
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
    if not _is_number(value) or _NUMBER.fullmatch(text) is None:
        return False
    # As floats, 9007199254740990.9 and 9007199254740991 would be equal.
    return Decimal(text) == Decimal(str(value))


def _value(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the argument at a path; None if it is absent, which the specification treats like null."""
    node: Any = arguments
    for name in path:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node


def _has_header(value: Any) -> bool:
    return isinstance(value, (str, int, float))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _header(name: str) -> str:
    return f"Mcp-Param-{name}"
