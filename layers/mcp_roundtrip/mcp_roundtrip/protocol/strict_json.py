"""Strict JSON parsing, compact JSON, and the canonical form of JSON that is digested.

Two values have the same canonical form exactly if they are the same JSON value:

- Integral floats become exact integers, because JavaScript writes ``2.0`` as ``2``. Above 2^53 it also writes
  other digits than Python (``65982389175107968.0`` as ``65982389175107970``): these are different values.
- Members are ordered by code point.
- Everything outside of ASCII is escaped, so that lone surrogates have a form, too.
- There is no Unicode normalization: different code points are different values.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from math import isfinite
from typing import Any, Final

MAX_DEPTH = 64
"""The most levels of arrays and objects that a document may have."""


class TooManyValues(ValueError):
    """A document has more than `limit` values."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"more than {limit} values")
        self.limit = limit


class RepeatedName(ValueError):
    """An object has two members of one name, such as a dict with the keys 1 and "1"."""


def parse_json(
    text: str | bytes | bytearray, *, max_depth: int = MAX_DEPTH, max_values: int | None = None
) -> Any:
    """Read one I-JSON document (RFC 7493): UTF-8, no duplicate members, no NaN or Infinity.

    `max_values` limits the values without the member names, and is checked before anything is built. Raises
    ValueError, of which TooManyValues is one, with a reason that does not quote the document.
    """
    if not isinstance(text, str):
        try:
            text = bytes(text).decode("utf-8")
        except UnicodeDecodeError:
            raise ValueError("not UTF-8") from None
    if max_values is not None and _has_more_values(text, max_values):
        raise TooManyValues(max_values)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos}") from None
    except RecursionError:
        raise ValueError(f"nested deeper than {max_depth} levels") from None
    # A document with fewer brackets cannot be too deep: two counts decide the common case.
    if text.count("[") + text.count("{") > max_depth and exceeds_depth(value, max_depth):
        raise ValueError(f"nested deeper than {max_depth} levels")
    return value


def parse_object(text: str | bytes, *, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Read one I-JSON document that is an object. Raises ValueError."""
    value = parse_json(text, max_depth=max_depth)
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value


def _has_more_values(text: str, limit: int) -> bool:
    # Each value except the first follows one of these characters: three counts decide for most documents.
    return sum(map(text.count, ",[{")) >= limit and count_json_values(text, limit) > limit


def count_json_values(text: str, limit: int) -> int:
    """Return the number of values, or `limit` + 1 if there are more, in time linear in the length."""
    up_to_a_value = re.compile(_UP_TO_A_VALUE, re.DOTALL)
    end = 0
    for count in range(1, limit + 1):
        found = up_to_a_value.match(text, end)
        if found is None:  # the end, or malformed: the decoder finds no more values either
            return count
        end = found.end()
    return limit + 1


# Possessive quantifiers, so that no text takes more than linear time. An empty container holds no further
# value, and the characters inside of strings do not count.
_UP_TO_A_VALUE: Final = r'(?:[^",\[{]++|"(?:[^"\\]++|\\.)*+"|[\[{][ \t\r\n]*+[\]}])*+[,\[{]'


def compact_json(value: Any) -> str:
    """Write JSON on one line, in ASCII because of lone surrogates. Raises ValueError for NaN and Infinity."""
    return _ENCODER.encode(value)


def canonical_json(value: Any) -> bytes:
    """Return the canonical form of a JSON value. Raises ValueError for a value that JSON cannot hold."""
    try:
        return _CANONICAL.encode(with_exact_integers(value)).encode("ascii")
    except TypeError as error:
        raise ValueError(str(error)) from None


def is_same_json(one: Any, other: Any) -> bool:
    """Return whether two JSON values are the same: `1` is `1.0`, and is not `true`. Raises as above."""
    return canonical_json(one) == canonical_json(other)


def digest(label: str, value: Any, *, size: int = 32) -> str:
    """Return the first `size` bytes of SHA-256 over `label` and the canonical form, in URL-safe Base64.

    The label separates digests that are made for different purposes.
    """
    hashed = sha256(label.encode() + b":" + canonical_json(value))
    return urlsafe_b64encode(hashed[:size]).rstrip(b"=").decode()


def sha256(data: bytes) -> bytes:
    import hashlib  # OpenSSL takes 3 ms, and most calls need no digest

    return hashlib.sha256(data).digest()


def with_exact_integers(value: Any) -> Any:
    """Return a JSON value in which 2.0 is 2. Raises ValueError for a member name that is no string."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):  # json.dumps would turn 1 and "1" into the same member
                raise ValueError("member names must be strings")
        return {name: with_exact_integers(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_exact_integers(item) for item in value]
    return value


def is_portable_json(value: Any) -> bool:
    """Return whether a value is JSON without numbers that JavaScript reads as Infinity, such as 10**400."""
    try:
        json.loads(compact_json(value), parse_int=_parse_float)
    except (TypeError, ValueError):
        return False
    return True


def exceeds_depth(value: Any, levels: int) -> bool:
    containers = [value] if isinstance(value, (dict, list)) else []
    for _ in range(levels):
        containers = [
            child
            for container in containers
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, (dict, list))
        ]
    return bool(containers)


def has_half_of_a_pair(value: Any) -> bool:
    """Return whether text, or JSON data, has half of a surrogate pair, which UTF-8 cannot encode."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object, for a decoder of JSON. Raises RepeatedName."""
    members = dict(pairs)
    if len(members) != len(pairs):
        raise RepeatedName("an object has a duplicate member")
    return members


def reject_constant(name: str) -> None:
    """Raise ValueError for NaN and Infinity, for a decoder of JSON."""
    raise ValueError(f"{name} is not JSON")


def _parse_integer(digits: str) -> int:
    # int() refuses more than 4,300 digits, with a message about an interpreter setting.
    if len(digits) > 4300:
        raise ValueError("a number has too many digits")
    return int(digits)


def _parse_float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError("a number is out of range")
    return number


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique_members,
    parse_constant=reject_constant,
    parse_int=_parse_integer,
    parse_float=_parse_float,
)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_CANONICAL = json.JSONEncoder(separators=(",", ":"), sort_keys=True, allow_nan=False)
