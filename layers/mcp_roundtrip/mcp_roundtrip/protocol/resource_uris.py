"""URIs of resources: their normal form, URI templates, and the resource that a URI names.

In the normal form, equivalent spellings are equal (RFC 3986 §6.2). Scheme and authority are in lower case,
percent-encoded unreserved characters are decoded, and characters outside ASCII are encoded. For http, https,
ws, wss and ftp, a default port is removed and an empty path is `/`. A URI with a `.` or `..` segment is
refused, not resolved.

Templates are the part of RFC 6570 that MCP servers use:

| Expression | Matches |
|---|---|
| `{id}` | one or more characters that are not reserved (RFC 3986 §2.2): no slash, for example |
| `{+path}` | one or more characters of any kind; once in a template, as many as possible |
| `{/page}` | `/` and a value, which may be empty, or nothing if no `/` follows; not after `{+path}` |
| `{?q,r}` | at the end: these parameters in any order, each at most once, and no others |

A reserved character separates two variables: `{a}/{b}.txt`, not `{a}-{b}`. Other expressions are refused.
Values are percent-decoded: a slash may have been `%2F`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from msgspec import Struct

from mcp_roundtrip.errors import DefinitionError

RESERVED: Final = ":/?#[]@!$&'()*+,;="  # RFC 3986 §2.2

# Patterns are strings, which the first URI compiles: a front door imports this module for every call.

EXPRESSION: Final = r"(\{[^{}]*\})"

_INVALID: Final = r"%(?![0-9A-Fa-f]{2})|[\x00-\x20\x7f\"<>\\^`{|}\ud800-\udfff]"
_UNRESERVED: Final = r"[A-Za-z0-9._~-]"
_COMPONENTS: Final = r"(?s)([A-Za-z][A-Za-z0-9+.-]*):(?://((?:\{[^{}/?]*\}|[^/?#{}])*))?(.*)"
_DOT_SEGMENT: Final = r"[^?#]*/\.\.?(?:[/?#]|\Z)"
_DEFAULT_PORTS: Final = {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}


class NormalUri(Struct, frozen=True):
    """A normal form. `key` is equal for equivalent URIs.

    In `spelled`, an authority that is no host has the client's case, for values as in `notes://{name}`.
    """

    key: str
    spelled: str


def normalize_uri(uri: str) -> NormalUri:
    """Return the normal form of a URI. Raises ValueError with the reason if it has none."""
    return _normalize(_normalize_octets(uri))


def normalize_template(text: str) -> NormalUri:
    """Return the normal form of a template, with its expressions as they are. Raises ValueError."""
    pieces = enumerate(re.split(EXPRESSION, text))
    return _normalize("".join(each if index % 2 else _normalize_octets(each) for index, each in pieces))


def decode(text: str) -> str:
    """Decode a part of a normal form. Raises ValueError if its octets are not UTF-8."""
    return re.sub("%(..)", _octet, text).encode("latin-1").decode()


def decode_reserved(normal: str) -> str:
    """Return a normal form with its encoded reserved characters decoded."""
    return re.sub("%(..)", lambda found: each if (each := _octet(found)) in RESERVED else found[0], normal)


def spelling_key(text: str) -> str:
    """Return a key that is equal for equivalent spellings of a URI or template; for other text, the text."""
    try:
        return normalize_template(text).key
    except ValueError:
        return text


def _normalize(text: str) -> NormalUri:
    found = re.fullmatch(_COMPONENTS, text)
    if found is None:
        return NormalUri(text, text)
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    if (authority is not None or rest.startswith("/")) and re.match(_DOT_SEGMENT, rest):
        raise ValueError("remove '.' and '..' segments")
    if authority is None:
        return NormalUri(f"{scheme}:{rest}", f"{scheme}:{rest}")
    port = _DEFAULT_PORTS.get(scheme)
    if port:
        authority = re.sub(rf":({port})?\Z", "", authority)
        has_path = "{+" in authority or rest.lstrip("{").startswith("/")
        rest = rest if has_path else f"/{rest}"
    pieces = enumerate(re.split(EXPRESSION, authority))
    folded = "".join(each if index % 2 else each.lower() for index, each in pieces)
    return NormalUri(f"{scheme}://{folded}{rest}", f"{scheme}://{folded if port else authority}{rest}")


def _normalize_octets(text: str) -> str:
    if invalid := re.search(_INVALID, text):
        raise ValueError(
            f"{invalid[0]!r} cannot be there; percent-encode it, and write variables as {{name}}"
        )
    return re.sub("%(..)", _normal_octet, percent_encode(text))


def percent_encode(text: str) -> str:
    """Encode the characters outside ASCII."""
    octets = text.encode().decode("latin-1")
    return re.sub("[^\x00-\x7f]", lambda octet: f"%{ord(octet[0]):02X}", octets)


def _normal_octet(found: re.Match[str]) -> str:
    octet = _octet(found)
    return octet if re.match(_UNRESERVED, octet) else found[0].upper()


def _octet(found: re.Match[str]) -> str:
    return chr(int(found[1], 16))


T = TypeVar("T")

_VARIABLES: Final = r"(?a)\{([+/]?[A-Za-z_]\w*|\?[A-Za-z_]\w*(?:,[A-Za-z_]\w*)*)\}"
_CHARACTER: Final = f"[^{re.escape(RESERVED)}]"
_WHOLE_OCTET: Final = "(?<!%)(?<!%.)"
"""The text before ends with a whole percent-encoded octet, not within one."""

_DOT_SEGMENT_OF_VALUE: Final = r"(?:\A|[/\\])\.\.?(?:[/\\]|\Z)"
"""A segment in a decoded value. Windows separates segments by a backslash, too."""


class Match(Struct, frozen=True):
    """The values of a template's variables in a URI. The most specific template has the highest `rank`.

    `rank`: the number of the template's own characters, whether it is a URI, minus the number of `{+path}`.
    """

    values: dict[str, str]
    rank: tuple[int, bool, int]


class UriTemplate(Struct, frozen=True):
    """A URI template, or a URI if it has no `variables`. Equivalent spellings have the same `key`."""

    text: str
    key: str
    variables: tuple[str, ...]
    path: re.Pattern[str]
    parameters: frozenset[str]

    @classmethod
    def parse(cls, text: str) -> UriTemplate:
        """Parse a template. Raises DefinitionError if it is malformed or not supported."""
        try:
            key = normalize_template(text).key
            literals, expressions = re.split(EXPRESSION, key)[::2], re.findall(EXPRESSION, key)
            for number, expression in enumerate(expressions):
                _check(expression, expressions[:number], literals[: number + 1], literals[number + 1 :])
            names = [name for each in expressions for name in each.strip("{}+/?").split(",")]
            if len(set(names)) < len(names):
                raise ValueError("a variable occurs twice; give one of them another name")
        except ValueError as error:
            raise DefinitionError(f"URI template {text!r}: {error}") from None
        parameters = expressions[-1][2:-1].split(",") if expressions and expressions[-1][1] == "?" else []
        patterns = [*map(_pattern, expressions), ""]
        path = "".join(re.escape(literal) + each for literal, each in zip(literals, patterns, strict=True))
        return cls(text, key, tuple(names), re.compile(path), frozenset(parameters))

    @property
    def is_static(self) -> bool:
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
            values = {name: decode(value) for name, value in values.items()}
        except ValueError:  # not UTF-8
            return None
        return Match(values, (own, self.is_static, -self.key.count("{+")))


class UriIndex(Generic[T]):
    """Finds the items whose URI or template matches a URI, in every spelling of it."""

    def __init__(self, entries: Iterable[tuple[UriTemplate, T]]) -> None:
        self._entries = tuple(entries)

    def find(self, uri: str) -> list[tuple[T, dict[str, str]]]:
        """Return the items that match, with the values of their variables. The first one is read.

        Only the most specific ones count, in the order of their registration. Items that match the URI with
        its reserved characters decoded follow, because `{+path}` has one value for `a/b` and `a%2Fb`. The
        caller needs the scopes of all items.

        No item matches if a value has a `.` or `..` segment, which would lead out of a folder of files
        ("Security Considerations" of resources).
        """
        try:
            normal = normalize_uri(uri)
            decoded = normalize_uri(decode_reserved(normal.spelled))
        except ValueError:
            return []
        found = self._find(normal)
        if any(re.search(_DOT_SEGMENT_OF_VALUE, value) for _, values in found for value in values.values()):
            return []
        return found + self._find(decoded) if found else []

    def find_equivalent(self, text: str) -> str:
        """Return the registered URI or template of which `text` is a spelling, or else `text`."""
        key = spelling_key(text)
        return next((template.text for template, _ in self._entries if template.key == key), text)

    def _find(self, uri: NormalUri) -> list[tuple[T, dict[str, str]]]:
        matches = [(item, match) for template, item in self._entries if (match := template.match(uri))]
        highest = max((match.rank for _, match in matches), default=None)
        return [(item, match.values) for item, match in matches if match.rank == highest]


def _check(expression: str, before: list[str], literals: list[str], after: list[str]) -> None:
    if not re.fullmatch(_VARIABLES, expression):
        raise ValueError(f"{expression} is not supported; write {{name}}, {{+name}}, {{/name}} or {{?a,b}}")
    if expression[1] == "?":
        if "?" in "".join(literals) or "#" in "".join(literals) or after != [""]:
            raise ValueError(f"{expression} is not at the end; put it there once, without another '?' or '#'")
        return
    has_path = any(each.startswith("{+") for each in before)
    if has_path and expression[1] in "+/":
        raise ValueError(f"write /{{name}} for {expression}: after {{+…}} its end cannot be found")
    if expression[1] == "/" and after[0][:1] not in RESERVED:
        raise ValueError(f"put '/' or another reserved character after {expression}")
    if before and expression[1] != "/" and not set(literals[-1]) & set(RESERVED):
        raise ValueError(f"put '/' or another reserved character between {expression} and {before[-1]}")


def _pattern(expression: str) -> str:
    name = expression.strip("{}+/")
    if expression[1] == "?":
        return ""  # `match` reads the parameters
    if expression[1] == "/":
        return f"(?:/(?P<{name}>{_CHARACTER}*+))?+"
    return f"(?P<{name}>{'.' if expression[1] == '+' else _CHARACTER}+){_WHOLE_OCTET}"
