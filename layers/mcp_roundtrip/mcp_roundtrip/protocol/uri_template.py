"""URI templates (RFC 6570) read backwards: from a URI to the values that expand to it.

The RFC defines expansion only (§1.4), so what a URI leaves open is settled here:

- Where a boundary could lie in several places (`{a}-{b}` and `x-y-z`), the earlier variable takes the most.
- `{id}` and `{+path}` need a character, since nothing else shows that they are there. The variables of `;`,
  `?` and `&` may be absent, because they are named; those of `/`, `.` and `#` may be so all together, where
  the operator's character cannot stem from what stands before or after them.
- Parameters of `{?a,b}{&c}` come in any order, each at most once, and no others. Their values may hold what a
  client need not encode in a query, such as a slash; a plus sign is a plus sign.
- `{+path}` and `{#f}` hold any character of a URI but the `;`, `?`, `&` or `#` that opens a later expression.

URIs are compared in normal form (`uri_normal`), so every spelling of a URI fits the same templates.

A value comes back decoded: a slash in it may have been `%2F`, and `../x` may have been `..%2Fx`. Check it
before it names a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Final, Generic, TypeAlias, TypeVar

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.uri_normal import UNRESERVED, NormalUri, normal_uri, units_of
from mcp_roundtrip.protocol.uri_scan import Fit, Literal, Maybe, Part, Query, Value, scan

T = TypeVar("T")

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = re.compile(r"[A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*")  # §2.3, without percent-encoded names
_SEPARATORS: Final = {"": ",", "+": ",", "#": ",", ".": ".", "/": "/", ";": ";", "?": "&", "&": "&"}
_OPENING: Final = "#./"
_DELIMITERS: Final = ";?&#"
_RESERVED_OPERATORS: Final = "=,!@|"  # §2.2

_RESERVED_BYTE: Final = re.compile("|".join(f"%{ord(character):02X}" for character in ":/?#[]@!$&'()*+,;="))

_UNRESERVED: Final = UNRESERVED | {"%"}
_ANY: Final = _UNRESERVED | frozenset(":/?#[]@!$&'()*+,;=")


@dataclass(frozen=True, slots=True)
class _Expression:
    operator: str
    names: tuple[str, ...]


_Piece: TypeAlias = str | _Expression


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A template and its `variables`, in order of appearance."""

    text: str
    variables: tuple[str, ...]
    _parts: tuple[Part, ...] = field(repr=False, compare=False)

    @classmethod
    def parse(cls, text: str) -> UriTemplate:
        """Raises DefinitionError for what RFC 6570 forbids and for what cannot be read back."""
        pieces = list(_pieces(text))
        names = tuple(name for piece in _expressions(pieces) for name in piece.names)
        repeated = [name for position, name in enumerate(names) if name in names[:position]]
        if repeated:
            raise _refused(text, f"the variable {repeated[0]!r} is there twice; give one another name")
        _check_neighbours(text, pieces)
        parts = [part for index in range(len(pieces)) for part in _parts(pieces, index)]
        template = cls(text, names, tuple(parts))
        if template.match("".join(map(_expanded, pieces))) is None:
            raise _refused(
                text,
                "no URI in normal form (RFC 3986 §6.2.2, §6.2.3) has this form; remove '.' and '..' "
                "segments and, with http and https, a default port, and write '/' for an empty path",
            )
        return template

    @property
    def is_static(self) -> bool:
        """Whether the template has no expressions, and so names one URI."""
        return not self.variables

    def match(self, uri: str) -> dict[str, str] | None:
        """The decoded values of the variables that `uri` holds, or None unless all of `uri` fits."""
        try:
            fit = self._fit(normal_uri(uri))
        except ValueError:  # a stray percent sign, a character that no URI has
            return None
        return None if fit is None else fit.values

    def _fit(self, uri: NormalUri) -> Fit | None:
        try:
            return scan(self._parts, uri)
        except ValueError:  # bytes that are not UTF-8, a parameter too many
            return None


class UriIndex(Generic[T]):
    """Finds what a URI means among URIs and URI templates, however it is spelled."""

    def __init__(self, entries: Iterable[tuple[UriTemplate, T]]) -> None:
        self._static: dict[str, T] = {}
        self._templates: list[tuple[UriTemplate, T]] = []
        for template, item in entries:
            if template.is_static:
                self._static.setdefault(normal_uri(template.text).key, item)
            else:
                self._templates.append((template, item))

    def find(self, uri: str) -> list[tuple[T, dict[str, str]]]:
        """What stands for this URI, with the values of its variables; nothing for a URI of none.

        A URI of its own goes before templates, and of these the most specific ones count. Several are equally
        specific if each has as much literal text: then the first one that was declared comes first. Behind
        these comes what the URI means with reserved characters decoded: the values are, so `{+path}` has the
        same value for `a/b` and for `a%2Fb`.
        """
        try:
            normal = normal_uri(uri)
        except ValueError:  # as above
            return []
        found = self._find(normal)
        if found and (decoded := _RESERVED_BYTE.sub(_decoded, normal.key)) != normal.key:
            known = [id(item) for item, _ in found]
            found += [each for each in self._find(normal_uri(decoded)) if id(each[0]) not in known]
        return found

    def _find(self, normal: NormalUri) -> list[tuple[T, dict[str, str]]]:
        if (item := self._static.get(normal.key)) is not None:
            return [(item, {})]
        fits = [
            (fit, item) for template, item in self._templates if (fit := template._fit(normal)) is not None
        ]
        highest = max((fit.rank for fit, _ in fits), default=(0, 0))
        return [(item, fit.values) for fit, item in fits if fit.rank == highest]


def _decoded(found: re.Match[str]) -> str:
    return chr(int(found[0][1:], 16))


def _refused(text: str, problem: str) -> DefinitionError:
    return DefinitionError(f"URI template {text!r}: {problem}")


def _pieces(text: str) -> Iterator[_Piece]:
    for index, piece in enumerate(_EXPRESSION.split(text)):
        if index % 2:
            yield _expression(text, piece)
        elif piece:
            yield _literal(text, piece)


def _literal(text: str, piece: str) -> str:
    if "{" in piece or "}" in piece:
        raise _refused(text, "its braces are not balanced; write each variable as {name}")
    try:
        units_of(piece)
    except ValueError as error:
        raise _refused(text, f"{piece!r} cannot be in a URI ({error}); percent-encode it") from error
    return piece


def _expression(text: str, inner: str) -> _Expression:
    operator = inner[:1] if inner[:1] in _SEPARATORS else ""
    if inner[:1] and inner[0] in _RESERVED_OPERATORS:
        raise _refused(text, f"RFC 6570 reserves the operator {inner[0]!r}; remove it")
    names = tuple(inner.removeprefix(operator).split(","))
    for name in names:
        _check_name(text, name)
    return _Expression(operator, names)


def _check_name(text: str, name: str) -> None:
    if _NAME.fullmatch(name.removesuffix("*")) and name.endswith("*"):
        raise _refused(
            text, f"{name!r} stands for a list, and values are strings; write {{+name}} for slashes"
        )
    plain, colon, _ = name.partition(":")
    if colon and _NAME.fullmatch(plain):
        raise _refused(text, f"{name!r} keeps only the beginning of a value; write {plain!r}")
    if not _NAME.fullmatch(name):
        raise _refused(text, f"{name!r} is not a variable name; use letters, digits and '_'")


def _expressions(pieces: Sequence[_Piece]) -> Iterator[_Expression]:
    return (piece for piece in pieces if isinstance(piece, _Expression))


def _expanded(piece: _Piece) -> str:
    """A piece of a URI of the template, with `x` as the value of every variable."""
    if isinstance(piece, str):
        return piece
    named = piece.operator in (";", "?", "&")
    values = _SEPARATORS[piece.operator].join(f"{name}=x" if named else "x" for name in piece.names)
    return values if piece.operator in ("", "+") else piece.operator + values


def _adjoining(pieces: Sequence[_Piece]) -> list[_Expression]:
    return list(_expressions(list(takewhile(lambda piece: not isinstance(piece, str), pieces))))


def _check_neighbours(text: str, pieces: Sequence[_Piece]) -> None:
    for before, after in pairwise(pieces):
        if not isinstance(before, _Expression):
            continue
        if isinstance(after, _Expression) and after.operator in ("", "+"):
            raise _refused(
                text, f"nothing tells {before.names[-1]!r} from {after.names[0]!r}; put text between them"
            )
        if before.operator in ("?", "&") and not _ends_query(after):
            raise _refused(
                text,
                "what follows the query could be part of its values; put only {&…}, {#…} or '#' after it",
            )


def _ends_query(after: _Piece) -> bool:
    return after[0] == "#" if isinstance(after, str) else after.operator in ("&", "#")


def _parts(pieces: Sequence[_Piece], index: int) -> Iterator[Part]:
    piece = pieces[index]
    if isinstance(piece, str):
        yield Literal(tuple(units_of(piece)))
    elif piece.operator in ("?", "&"):
        yield from _query(pieces, index, piece)
    else:
        characters = _characters(piece, pieces[index + 1 :])
        if piece.operator == ";":
            yield from _named(piece.names, characters)
        else:
            yield from _unnamed(piece, characters, optional=_may_be_absent(pieces, index, piece.operator))


def _characters(expression: _Expression, after: Sequence[_Piece]) -> frozenset[str]:
    if expression.operator not in ("+", "#"):
        return _UNRESERVED
    return _ANY.difference(later.operator for later in _expressions(after) if later.operator in _DELIMITERS)


def _unnamed(expression: _Expression, characters: frozenset[str], *, optional: bool) -> Iterator[Part]:
    operator = expression.operator
    opening = operator if operator in _OPENING else ""
    # The operator's character or a comma shows that an empty value is there.
    at_least = 0 if opening or len(expression.names) > 1 else 1
    parts: list[Part] = []
    for position, name in enumerate(expression.names):
        before = _SEPARATORS[operator] if position else opening
        parts += [Literal((before,))] if before else []
        parts.append(Value(name, characters, at_least))
    if opening and optional:
        yield Maybe(len(parts))
    yield from parts


def _named(names: Sequence[str], characters: frozenset[str]) -> Iterator[Part]:
    for name in names:  # §3.2.7: `;name` alone is the empty value
        yield from (Maybe(5), Literal((";", *name)), Value(name, frozenset(), 0))
        yield from (Maybe(2), Literal(("=",)), Value(name, characters, 0))


def _query(pieces: Sequence[_Piece], index: int, first: _Expression) -> Iterator[Part]:
    if index and isinstance(before := pieces[index - 1], _Expression) and before.operator in ("?", "&"):
        return  # it is read with the one before
    continuations = [
        name for piece in _adjoining(pieces[index + 1 :]) if piece.operator == "&" for name in piece.names
    ]
    names = {first.operator: frozenset([*first.names, *continuations])}
    yield Query({"&": frozenset(continuations)} | names if continuations else names)


def _may_be_absent(pieces: Sequence[_Piece], index: int, operator: str) -> bool:
    """Whether `operator` at this place of a URI can stem from nothing but this expression."""
    before = _adjoining(pieces[:index][::-1])
    after = pieces[index + 1 :]
    following = _adjoining(after)
    literal = "".join(piece for piece in after[len(following) : len(following) + 1] if isinstance(piece, str))
    return (
        not literal.startswith(operator)
        and all(other.operator != operator for other in following)
        and all(operator not in _characters(other, pieces[index:]) for other in before)
    )
