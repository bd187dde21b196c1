"""Agreement of the `Mcp-Param-*` headers with the arguments (SEP-2243).

Streamable HTTP, "Custom Headers from Tool Parameters" and "Server Validation". Imported by servers with such
parameters only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from mcp_roundtrip.canonical import compact
from mcp_roundtrip.protocol.mirrored_headers import decode_header, encode_header, mismatch

ParameterHeaders = Mapping[tuple[str, ...], str]
"""Where the value is in the arguments -> what follows `Mcp-Param-` in the name of its header."""

MAX_INTEGER: Final = 2**53 - 1
"""The largest that every intermediary reads as it is: many have no other numbers than doubles."""

# As in JSON. No double has a longer exponent, and Decimal refuses exponents of twenty digits.
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


def check_parameters(
    mirrored: ParameterHeaders,
    arguments: Mapping[str, Any],
    headers: Mapping[str, str],
    *,
    required: bool = True,
) -> None:
    """Raise ProtocolError -32020 unless the headers (lower-case names) say what the arguments say.

    Without `required`, a header may be missing: clients of the `initialize` era know of none.
    A header that no parameter declares is nobody's business here. An array or object where a string should
    be has no header either: to say what is wrong with it is left to the arguments' validation.
    """
    for path, name in mirrored.items():
        header = headers.get(_header(name).lower())
        problem = _problem(_value(arguments, path), header)
        if problem is not None and (required or header is not None):
            raise mismatch(f"the {_header(name)} header {problem}")


def parameter_headers(mirrored: ParameterHeaders, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The headers a client sends with a call, lower-case.

    Raises ValueError for a string with a lone surrogate, which no header can carry.
    """
    values = {name: _value(arguments, path) for path, name in mirrored.items()}
    return {
        _header(name).lower(): encode_header(value if isinstance(value, str) else compact(value))
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
        return "is not valid: its characters or its Base64 form"
    if _is_number(value) and abs(value) > MAX_INTEGER:
        return f"cannot mirror integers beyond {MAX_INTEGER}, where intermediaries read others"
    return None if _says(decoded, value) else "does not match the body"


def _says(text: str, value: Any) -> bool:
    if isinstance(value, str):
        return text == value
    if isinstance(value, bool):
        return text == compact(value)
    if not _is_number(value) or _NUMBER.fullmatch(text) is None:
        return False
    # Not float(text): 9007199254740990.9 would do for 9007199254740991.
    return Decimal(text) == Decimal(str(value))


def _value(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """None where nothing is: the specification makes no difference between null and absent."""
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
