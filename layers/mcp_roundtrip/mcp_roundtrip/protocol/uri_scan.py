"""The parts of a URI template that is read backwards, and their scan in O(length of the URI times parts).

From the last part to the first, each part notes from which positions of the URI it and all after it can reach
the end. Then one walk from the start follows those notes: nothing is tried twice, so nothing backtracks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Units: TypeAlias = Sequence[str]
"""A URI cut into characters and whole percent-encoded bytes, so that no boundary falls inside one."""

_STRAY_PERCENT: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_FORBIDDEN: Final = re.compile(r"[\x00-\x20\x7f\"<>\\^`{|}]")
_ENCODED: Final = re.compile(r"%..|[^\x00-\x7f]")
_UNIT: Final = re.compile(r"%..|.", re.DOTALL)


def units_of(text: str) -> Units:
    """`text` in the normal form of RFC 3986 §6.2.2.1: `%2f` is `%2F`, and what is not ASCII is encoded.

    Raises ValueError for characters that no URI has, half of a surrogate pair among them, and for a percent
    sign without two digits.
    """
    if forbidden := _FORBIDDEN.search(text):
        raise ValueError(f"{forbidden[0]!r} cannot stand in a URI")
    if _STRAY_PERCENT.search(text):
        raise ValueError("a percent sign is not followed by two hexadecimal digits")
    return _UNIT.findall(_ENCODED.sub(_normal, text))


def _normal(found: re.Match[str]) -> str:
    return found[0].upper() if found[0][0] == "%" else "".join(f"%{byte:02X}" for byte in found[0].encode())


def decode(units: Iterable[str]) -> str:
    """The text that `units` encode. Raises ValueError (UnicodeDecodeError) when it is not UTF-8."""
    return b"".join(bytes.fromhex(unit[1:]) if len(unit) == 3 else unit.encode() for unit in units).decode()


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly these units."""

    units: tuple[str, ...]

    def begins(self, units: Units) -> bool:
        return tuple(units[: len(self.units)]) == self.units

    def leaps(self, units: Units, ends: Iterable[int]) -> dict[int, int]:
        size = len(self.units)
        starts = ((end - size, end) for end in ends if end >= size)
        return {start: end for start, end in starts if tuple(units[start:end]) == self.units}

    def read(self, units: Units) -> dict[str, str]:
        return {}


@dataclass(frozen=True, slots=True)
class Value:
    """As many units as possible that begin with one of `characters`, `at_least` 0 or 1 of them."""

    name: str
    characters: frozenset[str]
    at_least: int

    def leaps(self, units: Units, ends: Iterable[int]) -> dict[int, int]:
        ends = set(ends)
        leaps = {}
        furthest = None
        for start in range(len(units), -1, -1):
            if start < len(units) and units[start][0] not in self.characters:
                furthest = None
            if furthest is None and start in ends:
                furthest = start
            if furthest is not None and furthest >= start + self.at_least:
                leaps[start] = furthest
        return leaps

    def read(self, units: Units) -> dict[str, str]:
        return {self.name: decode(units)}


@dataclass(frozen=True, slots=True)
class Query:
    """Parameters in any order up to `#` or the end; `names` has those that `?` or `&` may open.

    A query that breaks the rules is an error, not an absent one: no value before it can hold its opening.
    """

    names: Mapping[str, frozenset[str]]

    def leaps(self, units: Units, ends: Iterable[int]) -> dict[int, int]:
        ends = set(ends)
        leaps = {}
        end = len(units)
        for start in range(len(units), -1, -1):
            opening = units[start] if start < len(units) else ""
            end = start if opening == "#" else end
            target = end if opening in self.names else start
            if target in ends:
                leaps[start] = target
        return leaps

    def read(self, units: Units) -> dict[str, str]:
        if not units:
            return {}
        values: dict[str, str] = {}
        for parameter in "".join(units[1:]).split("&"):
            encoded_name, _, value = parameter.partition("=")
            name = decode(units_of(encoded_name))
            if name in values or name not in self.names[units[0]]:
                raise ValueError("a parameter is unknown or there twice")
            values[name] = decode(units_of(value))
        return values


@dataclass(frozen=True, slots=True)
class Maybe:
    """The next `length` parts are there, or, where that leads nowhere, absent."""

    length: int


Part: TypeAlias = Literal | Value | Query | Maybe


def scan(parts: Sequence[Part], units: Units) -> dict[str, str] | None:
    """The values of a URI that is `parts` from its start to its end, or None.

    Raises ValueError when a value is not encoded UTF-8 or a query has wrong parameters.
    """
    if parts and isinstance(opening := parts[0], Literal) and not opening.begins(units):
        return None  # most templates of a server, for any one URI
    leaps: list[dict[int, tuple[int, int]]] = [
        {} for _ in parts
    ]  # [part][position] -> next part and position
    leaps.append({len(units): (0, 0)})
    for index in range(len(parts) - 1, -1, -1):
        part, after = parts[index], leaps[index + 1]
        if isinstance(part, Maybe):
            beyond = index + 1 + part.length
            absent = {position: (beyond, position) for position in leaps[beyond]}
            leaps[index] = absent | {position: (index + 1, position) for position in after}
        else:
            leaps[index] = {start: (index + 1, end) for start, end in part.leaps(units, after).items()}
    return _walk(parts, units, leaps)


def _walk(
    parts: Sequence[Part], units: Units, leaps: Sequence[Mapping[int, tuple[int, int]]]
) -> dict[str, str] | None:
    values: dict[str, str] = {}
    index = position = 0
    if position not in leaps[index]:
        return None
    while index < len(parts):
        part, start = parts[index], position
        index, position = leaps[index][start]
        if not isinstance(part, Maybe):
            values |= part.read(units[start:position])
    return values
