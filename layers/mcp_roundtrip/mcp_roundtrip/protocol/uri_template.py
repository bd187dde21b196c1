"""URI templates: the part of RFC 6570 that MCP servers use, matched against URIs.

| Expression | Matches |
|---|---|
| `{id}` | one or more characters that are not reserved (RFC 3986 §2.2): no slash, for example |
| `{+path}` | one or more characters of any kind; once in a template |
| `{/a,b}` | `/` and a value, which may be empty, for each name; the last ones of a path may be absent |
| `{?q,r}` | at the end: these parameters in any order, each at most once, and no others |

RFC 6570 defines expansion only (§1.4). Where a boundary could lie in several places, `{+path}` is as long as
possible, and an earlier `{id}` as short as possible. URIs match in normal form (`protocol.uri`), so every
spelling of a URI matches the same templates. Values are percent-decoded: a slash may have been `%2F`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.uri import (
    RESERVED,
    NormalUri,
    decode_octets,
    decode_reserved,
    normalize_octets,
    normalize_uri,
)

T = TypeVar("T")

_EXPRESSION: Final = re.compile(r"\{([+/?&;.#]?)([^{}]*)\}")
_TOKEN: Final = re.compile(r"\{[^{}]*\}|[^{}]+|[{}]")
_LAST_QUERY: Final = re.compile(r"\{\?([^{}]*)\}\Z")
_HEAD: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://(?:\{[^{}]*\}|[^/?#{}])*)?")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REMEDIES: Final = {
    "?": "put it at the end, once, without another '?' before it",
    "&": "add its names to {?…}",
    ";": "write ;name={name}",
    ".": "write .{name}",
    "#": "write #{+name}",
}
"""Operator of RFC 6570 that is not supported, or not in that place -> what to write instead."""

_UNRESERVED: Final = f"[^{RESERVED.pattern[1:]}"
_BOUNDARY: Final = f"(?!{_UNRESERVED})"
_VARIABLE_STARTS: Final = ("(?P<", "(?>")


class Match(NamedTuple):
    """The values of a template's variables in a URI, and how specific the template is.

    `rank` is the number of characters that are the template's own, then minus the number of its `{+path}`. Of
    several templates that match a URI, the one with the highest rank is the most specific.
    """

    values: dict[str, str]
    rank: tuple[int, int]


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A URI template, or a URI if it has no `variables`. Equivalent spellings have the same `key`."""

    text: str
    key: str
    variables: tuple[str, ...]
    path: re.Pattern[str]
    parameters: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> UriTemplate:
        """Parse a template. Raises DefinitionError if it is malformed or not supported."""
        key = _template_key(text)
        path, query = key, None
        if (last := _LAST_QUERY.search(key)) and "?" not in _EXPRESSION.sub("", key[: last.start()]):
            path, query = key[: last.start()], last[1]
        variables = tuple(name for _, names in _EXPRESSION.findall(key) for name in _names(text, names))
        if repeated := [name for name in dict.fromkeys(variables) if variables.count(name) > 1]:
            raise _template_error(
                text, f"the variable {repeated[0]!r} occurs twice; give one of them another name"
            )
        parameters = frozenset(query.split(",") if query else ())
        template = cls(text, key, variables, re.compile(_path_pattern(text, path)), parameters)
        if template.match(normalize_uri(_EXPRESSION.sub(_expand_sample, text))) is None:
            raise _template_error(
                text,
                "no URI in normal form (RFC 3986 §6.2.2, §6.2.3) matches it; remove '.' and '..' "
                "segments and, with http and https, a default port, and write '/' for an empty path",
            )
        return template

    @property
    def is_static(self) -> bool:
        """Whether the template is a URI."""
        return not self.variables

    def match(self, uri: NormalUri) -> Match | None:
        """Match the whole URI, in time proportional to its length. None if it does not match."""
        path, mark, query = uri.key.partition("?") if self.parameters else (uri.key, "", "")
        found = self.path.fullmatch(path)
        if found is None or "#" in query:
            return None
        spans = {name: found.span(name) for name in self.path.groupindex}
        values = {name: uri.spelled[start:end] for name, (start, end) in spans.items() if start >= 0}
        for parameter in query.split("&") if mark else ():
            name, _, value = parameter.partition("=")
            if name not in self.parameters or name in values:
                return None
            values[name] = value
        own = len(uri.key) - sum(map(len, values.values()))
        try:
            return Match(
                {name: decode_octets(value) for name, value in values.items()}, (own, -self.key.count("{+"))
            )
        except ValueError:  # not UTF-8
            return None


class UriIndex(Generic[T]):
    """Finds the items whose URI or template matches a URI, in every spelling of it."""

    def __init__(self, entries: Iterable[tuple[UriTemplate, T]]) -> None:
        self._static: dict[str, T] = {}
        self._templates: list[tuple[UriTemplate, T]] = []
        for template, item in entries:
            if template.is_static:
                self._static.setdefault(template.key, item)
            else:
                self._templates.append((template, item))

    def find(self, uri: str) -> list[tuple[T, dict[str, str]]]:
        """Return the items that match, with the values of their variables; the item to read is the first.

        A static URI precedes templates. Of the templates, only the most specific ones count, in the order of
        their registration. Items that match the URI with its reserved characters decoded follow, because
        values are decoded: `{+path}` has one value for `a/b` and `a%2Fb`. A reader needs the scopes of all.
        """
        try:
            normal = normalize_uri(uri)
        except ValueError:
            return []
        found = self._find(normal)
        if found and (decoded := decode_reserved(normal.key)) != normal.key:
            known = [id(item) for item, _ in found]
            found += [each for each in self._find(normalize_uri(decoded)) if id(each[0]) not in known]
        return found

    def _find(self, uri: NormalUri) -> list[tuple[T, dict[str, str]]]:
        if (item := self._static.get(uri.key)) is not None:
            return [(item, {})]
        matches = [(match, item) for template, item in self._templates if (match := template.match(uri))]
        highest = max((match.rank for match, _ in matches), default=None)
        return [(item, match.values) for match, item in matches if match.rank == highest]


def spelling_key(text: str) -> str:
    """Return a key that is equal for equivalent spellings of a URI or template; for other text, the text."""
    try:
        return normalize_uri(text).key
    except ValueError:  # a template has braces
        pass
    try:
        return _template_key(text)
    except DefinitionError:
        return text


def find_equivalent(text: str, known: Iterable[str]) -> str:
    """Return the known URI or template of which `text` is a spelling; if there is none, return `text`."""
    key = spelling_key(text)
    return next((each for each in known if spelling_key(each) == key), text)


def _template_error(text: str, problem: str) -> DefinitionError:
    return DefinitionError(f"URI template {text!r}: {problem}")


def _template_key(text: str) -> str:
    """Return a template whose literals are in normal form. Raises DefinitionError."""

    def normal(token: re.Match[str]) -> str:
        if token[0] in ("{", "}"):
            raise _template_error(text, "its braces are not balanced; write each variable as {name}")
        try:
            return token[0] if token[0][0] == "{" else normalize_octets(token[0])
        except ValueError as error:
            raise _template_error(
                text, f"{token[0]!r} cannot be part of a URI ({error}); percent-encode it"
            ) from None

    key = _TOKEN.sub(normal, text)
    head = _HEAD.match(key)
    if head is None:
        return key
    if re.search(r"\{\+[^{}]*\}.", head[0]):
        raise _template_error(
            text, "the text after {+name} could be in the host or in the path; put '/' before it"
        )
    folded = _TOKEN.sub(lambda token: token[0] if token[0][0] == "{" else token[0].lower(), head[0])
    return folded + key[head.end() :]


def _names(text: str, inner: str) -> list[str]:
    names = inner.split(",")
    for name in names:
        if name.endswith("*"):
            raise _template_error(
                text, f"{name!r} is a list, not a string; write {{+name}} for a value with slashes"
            )
        if ":" in name:
            raise _template_error(text, f"{name!r} is a prefix of a value; write {name.partition(':')[0]!r}")
        if not _NAME.fullmatch(name):
            raise _template_error(text, f"{name!r} is not a variable name; use letters, digits and '_'")
    return names


def _path_pattern(text: str, path: str) -> str:
    """Return the regular expression of a path, built from its end. Raises DefinitionError.

    Only the group of `{+path}` backtracks. Every other variable is atomic with the literal after it: where
    the literal occurs several times, the first occurrence leaves the most for the rest.
    """
    pieces = _EXPRESSION.split(path)
    if path.count("{+") > 1:
        raise _template_error(text, "it has {+…} twice; remove one '+'")
    pattern, boundary = "", _BOUNDARY
    is_end = "{+" not in path  # where variables may be absent
    for operator, inner, literal in zip(pieces[-3::-3], pieces[-2::-3], pieces[::-3], strict=False):
        _check_expression(text, operator, inner, literal, pattern)
        is_end = is_end and not literal and operator == "/"
        after = f"{re.escape(literal)}{boundary}" if literal else ""
        for name in reversed(inner.split(",")):
            pattern = _value_pattern(operator, name, after) + pattern
            pattern = f"(?:{pattern})?" if is_end else pattern
            after = ""
        boundary = _BOUNDARY if operator == "/" else ""
    return re.escape(pieces[0]) + pattern


def _value_pattern(operator: str, name: str, literal: str) -> str:
    if operator == "+":
        return f"(?P<{name}>.+){literal}"
    start, times = ("/", "*") if operator == "/" else ("", "+")
    if literal:
        return f"{start}(?>(?P<{name}>{_UNRESERVED}{times}?){literal})"
    return f"{start}(?P<{name}>{_UNRESERVED}{times}+)"


def _check_expression(text: str, operator: str, inner: str, literal: str, after: str) -> None:
    """Raise DefinitionError unless a path may have this expression before a literal and a pattern."""
    problem = ""
    if operator in _REMEDIES:
        problem = f"{{{operator}{inner}}} is not supported here; {_REMEDIES[operator]}"
    elif operator != "/" and "," in inner:
        problem = f"{{{operator}{inner}}} is not supported; write a pair of braces for each name"
    elif not literal and after.startswith(_VARIABLE_STARTS):
        problem = f"nothing separates {inner!r} from the variable after it; put text between them"
    elif operator == "+" and "(?P<" in after and literal and not RESERVED.match(literal):
        problem = f"{{+{inner}}} could end in many places; put '/' or another reserved character after it"
    if problem:
        raise _template_error(text, problem)


def _expand_sample(expression: re.Match[str]) -> str:
    """Expand an expression with the value `x` for each variable of the path."""
    operator, names = expression.groups()
    return "" if operator == "?" else "/x" * len(names.split(",")) if operator == "/" else "x"
