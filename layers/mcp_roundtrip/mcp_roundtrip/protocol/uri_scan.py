"""The parts of a URI template that is read backwards, and their scan in O(length of the URI times parts).

From the last part to the first, each part notes from which positions of the URI it and all after it can reach
the end. Then one walk from the start follows those notes: nothing is tried twice, so nothing backtracks.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from mcp_roundtrip.protocol.uri_normal import UNRESERVED, NormalUri, Units, decode, fold, units_of


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly these units; in the scheme and the authority of a URI in any case."""

    units: tuple[str, ...]
    folded: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folded", tuple(map(fold, self.units)))

    def is_at(self, start: int, uri: NormalUri) -> bool:
        here = tuple(uri.units[start : start + len(self.units)])
        without_case = max(0, uri.folded - start)
        return here == self.folded[:without_case] + self.units[without_case:]

    def leaps(self, uri: NormalUri, ends: Collection[int]) -> dict[int, int]:
        units, own, size = uri.units, self.units, len(self.units)
        beyond = uri.folded + size
        found = {to - size: to for to in ends if to >= beyond and tuple(units[to - size : to]) == own}
        if uri.folded and any(to < beyond for to in ends):
            found |= {to - size: to for to in ends if size <= to < beyond and self.is_at(to - size, uri)}
        return found

    def read(self, units: Units) -> dict[str, str]:
        return {}

    def rank(self, units: Units) -> tuple[int, int]:
        return len(self.units), 0


@dataclass(frozen=True, slots=True)
class Value:
    """As many units as possible that begin with one of `characters`, `at_least` 0 or 1 of them."""

    name: str
    characters: frozenset[str]
    at_least: int

    def leaps(self, uri: NormalUri, ends: Collection[int]) -> dict[int, int]:
        units, ends = uri.units, set(ends)
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

    def rank(self, units: Units) -> tuple[int, int]:
        return 0, 0 if self.characters <= _ENCODED_VALUE else -1


@dataclass(frozen=True, slots=True)
class Query:
    """Parameters in any order up to `#` or the end; `names` has those that `?` or `&` may open.

    A query that breaks the rules is an error, not an absent one: no value before it can hold its opening.
    """

    names: Mapping[str, frozenset[str]]

    def leaps(self, uri: NormalUri, ends: Collection[int]) -> dict[int, int]:
        units, ends = uri.units, set(ends)
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

    def rank(self, units: Units) -> tuple[int, int]:
        """The opening, and each parameter's name with its `=` and `&`, are as good as literal text."""
        parameters = "".join(units).split("&") if units else []
        return sum(len(parameter.partition("=")[0]) + 1 for parameter in parameters), 0


@dataclass(frozen=True, slots=True)
class Maybe:
    """The next `length` parts are there, or, where that leads nowhere, absent."""

    length: int


Part: TypeAlias = Literal | Value | Query | Maybe

_ENCODED_VALUE = UNRESERVED | {"%"}


@dataclass(frozen=True, slots=True)
class Fit:
    """How a URI fits a template: the `values` of the variables, and a `rank` to compare with other templates.

    The rank is the number of units that are the template's own text, and then, negative, the number of
    variables that take reserved characters: of two templates, the one with the higher rank is more specific.
    """

    values: dict[str, str]
    rank: tuple[int, int]


def scan(parts: Sequence[Part], uri: NormalUri) -> Fit | None:
    """How a URI that is `parts` from its start to its end fits them, or None.

    Raises ValueError when a value is not encoded UTF-8 or a query has wrong parameters.
    """
    if parts and isinstance(opening := parts[0], Literal) and not opening.is_at(0, uri):
        return None  # most templates of a server, for any one URI
    units = uri.units
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
            leaps[index] = {start: (index + 1, end) for start, end in part.leaps(uri, after).items()}
    return _walk(parts, uri.spelled, leaps)


def _walk(parts: Sequence[Part], units: Units, leaps: Sequence[Mapping[int, tuple[int, int]]]) -> Fit | None:
    values: dict[str, str] = {}
    index = position = literal = reserved = 0
    if position not in leaps[index]:
        return None
    while index < len(parts):
        part, start = parts[index], position
        index, position = leaps[index][start]
        if not isinstance(part, Maybe):
            values |= part.read(units[start:position])
            rank = part.rank(units[start:position])
            literal, reserved = literal + rank[0], reserved + rank[1]
    return Fit(values, (literal, reserved))
