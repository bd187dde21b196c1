"""The HTTP headers that mirror the body of a request (SEP-2243; Streamable HTTP "Server Validation")."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final

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

_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_ALLOWED: Final = re.compile(r"[\x20-\x7e\t]*")
_PLAIN: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


def check_headers(request: JsonRpcRequest, headers: Mapping[str, str]) -> None:
    """Raise -32020 unless the headers are present and equal the members of the body.

    The version is compared only if the body has one: `_meta` without a version is another error.
    """
    _compare("MCP-Protocol-Version", headers.get(HEADER_PROTOCOL_VERSION), _body_version(request))
    _compare("Mcp-Method", headers.get(HEADER_METHOD), request.method)
    if request.method in NAME_PARAMETER:
        _check_name(request, headers.get(HEADER_NAME))


def check_present_headers(request: JsonRpcRequest, headers: Mapping[str, str]) -> None:
    """Raise -32020 if a header differs from the body, for clients that open with `initialize`.

    They need not send these headers; but if they do, a proxy may have routed by them.
    """
    method = headers.get(HEADER_METHOD)
    if method is not None:
        _compare("Mcp-Method", method, request.method)
    if HEADER_NAME in headers and request.method in NAME_PARAMETER:
        _check_name(request, headers[HEADER_NAME])


def _check_name(request: JsonRpcRequest, header: str | None) -> None:
    if header is None:
        if request.method in NAME_HEADER_REQUIRED:
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

    Gateways join the values of a header that is sent twice with commas. It is refused with equal values, too:
    it is no list, and a proxy may have read one of the values only (RFC 9110 §5.3).
    """
    if {decode_header(each) for each in value.split(",")} == {expected}:
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

    None if the header holds other characters than visible ASCII, space and tab, or a sentinel whose
    content is not canonical Base64 of UTF-8.
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
