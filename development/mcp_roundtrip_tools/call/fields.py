"""Fields of forms and arguments of tools: what a user may enter, by JSON Schema."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import jsonschema_rs

from mcp_roundtrip.protocol.strict_json import parse_json
from mcp_roundtrip.schema.subschemas import DIALECTS, dialect_of, resolve
from mcp_roundtrip_testing.played_call import choices_of
from mcp_roundtrip_tools.call.errors import usage_error
from mcp_roundtrip_tools.template.model import hint

YES: Final = ("y", "yes", "true", "1", "on")
NO: Final = ("n", "no", "false", "0", "off")

UNSET: Final = object()
"""The value of a field that is left out."""

_NULL: Final = {"type": "null"}

_QUOTED_OR_NAME: Final = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|(?<!\S)(?P<name>[\w.-]+=)(?=[{\[])""")
"""A text in quotes, or the name of an argument before a list or an object."""


@dataclass(frozen=True)
class Field:
    """A member of an object. `options` are its choices, or those of its list. No default is UNSET."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool

    @property
    def default(self) -> Any:
        return self.schema.get("default", UNSET)

    @property
    def label(self) -> str:
        """What the user reads; the name of a single value says nothing."""
        return str(self.schema.get("title") or self.name)

    @property
    def kind(self) -> str:
        """The type in the schema: that of the only branch besides null; "json" for several and for none."""
        return self._kinds[0] if len(self._kinds) == 1 else "json"

    @property
    def _kinds(self) -> list[str]:
        return [each for each in _types(self.schema) if each != "null"]

    @property
    def summary(self) -> str:
        """The choices or the types, for a list of arguments."""
        return "|".join(title for _, title in self.options) or "|".join(self._kinds) or "json"

    @property
    def options(self) -> list[tuple[Any, str]]:
        return choices_of(self.schema) or choices_of(self._items) or self._options_or_null

    @property
    def _options_or_null(self) -> list[tuple[Any, str]]:
        branches = self.schema.get("anyOf", ())
        choices = [choices_of(each) for each in branches if each != _NULL]
        return [*chain(*choices), (None, "null")] if _NULL in branches and choices and all(choices) else []

    @property
    def _items(self) -> Mapping[str, Any]:
        items = self.schema.get("items")
        return items if isinstance(items, dict) else {}

    def hint(self) -> str:
        """Return what the user may enter, in brackets."""
        if self.kind == "array" and self.options:
            allowed = "numbers, separated by commas"
        elif self.options:
            allowed = f"1-{len(self.options)}"
        elif self.kind == "boolean":
            return "[y/n]" if self.default is UNSET else "[Y/n]" if self.default else "[y/N]"
        else:
            allowed = self._shape or ""
        parts = [allowed] if allowed else []
        if self.default is not UNSET:
            parts.append(f"default {self._shown(self.default)}")
        elif not self.is_required:
            parts.append("optional")
        return f"[{', '.join(parts)}]" if parts else ""

    @property
    def _shape(self) -> str | None:
        return _HINTS.get(self.kind) or _HINTS.get(str(self.schema.get("format")))

    def read(self, text: str) -> Any:
        """Return the value of a text; UNSET for an optional field without text. Raises ValueError."""
        is_text = self.kind == "string" and not self.options
        if not (text if is_text else text.strip()):
            return self._without_text(can_be_empty=is_text and not self.schema.get("minLength"))
        schema = {name: each for name, each in self.schema.items() if name != "$ref"}
        validator = _validator(schema)
        values = [text] if is_text else [*self._readings(text.strip())]
        found = [value for value in values if validator.is_valid(value)]
        if not found:
            self._check(validator, values[0])
        return (found or values)[0]

    def _without_text(self, *, can_be_empty: bool) -> Any:
        if self.default is not UNSET:
            return self.default
        if self.is_required and not can_be_empty:
            raise ValueError("needs a value")
        return "" if self.is_required else UNSET

    def _readings(self, entered: str) -> Iterator[Any]:
        """Yield what a text can mean. Raises ValueError for a wrong choice."""
        if self.kind == "array" and not entered.startswith("["):
            item = Field("", self._items, True)
            yield [item.read(each) for each in entered.split(",") if each.strip()]
        elif self.options:
            yield _choice(self.options, entered)
        else:
            if self.kind == "boolean" and entered.lower() in (*YES, *NO):
                yield entered.lower() in YES
            with suppress(ValueError):
                yield parse_json(entered)
            yield entered

    def _check(self, validator: jsonschema_rs.Validator, value: Any) -> None:
        """Raise ValueError for a value that is refused, unless by alternatives: the server explains them."""
        try:
            validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            if error.kind.name in ("anyOf", "oneOf"):
                return
            is_other_kind = re.search("is not (of type|a)", error.message)
            shape = self._shape if is_other_kind else None
            raise ValueError(f"must be: {shape}" if shape else f"does not fit: {error.message}") from None

    def _shown(self, value: Any) -> str:
        numbers = {json.dumps(each): str(number) for number, (each, _) in enumerate(self.options, 1)}
        values = value if isinstance(value, list) else [value]
        return ",".join(numbers.get(json.dumps(each), str(each)) for each in values)


def fields_of(schema: Any) -> tuple[Field, ...]:
    """Return the fields of an object's schema. A schema that is none describes no field."""
    # The meta-schema of another dialect would be fetched.
    if dialect_of(schema) not in DIALECTS or not jsonschema_rs.meta.is_valid(schema):
        names, unknown = schema.get("properties"), {"$schema": dialect_of(schema), "anyOf": [{}]}
        return tuple(Field(name, unknown, False) for name in (names if isinstance(names, dict) else ()))
    shared = {name: schema[name] for name in ("$schema", "$defs", "definitions") if name in schema}
    required, members = schema.get("required", ()), schema.get("properties", {})
    return tuple(Field(name, _resolved(each, shared), name in required) for name, each in members.items())


def _validator(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """Return the validator of the dialect of a schema, 2020-12 by default (basic/index "Schema Dialect").

    It fetches nothing. Raises ValueError for another dialect, and for a `$ref` to another document.
    """
    try:
        return jsonschema_rs.validator_for(schema, validate_formats=True, offline=True)
    except jsonschema_rs.ValidationError as error:
        raise ValueError(f"cannot be checked: {error.message}") from None


def _resolved(schema: Any, shared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema with dialect and definitions; it, its alternatives and items are no references."""
    found = _inlined(schema, shared)
    if "anyOf" in found:
        found = {**found, "anyOf": [_inlined(each, shared) for each in found["anyOf"]]}
    if isinstance(found.get("items"), dict):
        found = {**found, "items": {**_inlined(found["items"], shared), **shared}}
    return {**found, **shared}


def _inlined(schema: Any, shared: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(schema, dict):
        return {}
    found = resolve(shared, schema.get("$ref"))
    return {**found, **schema} if isinstance(found, dict) else schema


def _types(schema: Any) -> list[str]:
    if not isinstance(schema, dict):
        return []
    kind = schema.get("type")
    if kind is not None:
        return kind if isinstance(kind, list) else [kind]
    branches = schema.get("anyOf") or schema.get("oneOf") or ()
    found = [name for branch in branches for name in _types(branch)]
    return list(dict.fromkeys(found)) or (["string"] if choices_of(schema) or "const" in schema else [])


def _choice(options: list[tuple[Any, str]], entered: str) -> Any:
    """Return the value of a number, of a value, or of the only title that contains the text."""
    for value, _ in options:
        if entered == str(value):
            return value
    if entered.isdecimal() and 0 < int(entered) <= len(options):
        return options[int(entered) - 1][0]
    found = [option for option in options if entered.casefold() in option[1].casefold()]
    exact = [option for option in found if entered.casefold() == option[1].casefold()]
    if len(exact or found) == 1:
        return (exact or found)[0][0]
    fits = f"fits {len(found)} choices; it " if found else ""
    titles = ", ".join(title for _, title in options)
    raise ValueError(f"{fits}must be a number from 1 to {len(options)}, or one of {titles}")


_HINTS: Final = {
    "boolean": "y or n",
    "integer": "whole number",
    "number": "number",
    "array": "values, separated by commas",
    "object": "JSON",
    "json": "JSON or text",
    "date": "YYYY-MM-DD",
    "date-time": "YYYY-MM-DDThh:mm:ssZ",
    "email": "email address",
    "uri": "URL",
}


def split_words(text: str) -> list[str]:
    """Return the words of ARGS, as a shell splits them; JSON keeps its quotes. Raises CallFailed."""
    if text.lstrip().startswith("{"):
        return [text.strip()]
    try:
        return shlex.split(_quote_json(text))
    except ValueError as error:
        raise usage_error(f"ARGS cannot be split into words: {error}.") from None


def _quote_json(text: str) -> str:
    """Put lists and objects that are JSON into quotes for a shell."""
    quoted, begin = "", 0
    for found in _QUOTED_OR_NAME.finditer(text):
        if found["name"]:
            with suppress(ValueError):
                _, end = json.JSONDecoder().raw_decode(text, found.end())
                quoted += text[begin : found.end()] + shlex.quote(text[found.end() : end])
                begin = end
    return quoted + text[begin:]


def read_arguments(words: Sequence[str], input_schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments in words. Raises CallFailed."""
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        try:
            arguments: dict[str, Any] = json.loads(words[0])
        except ValueError as error:
            raise usage_error(f"The arguments are not JSON: {error}.") from None
        return arguments
    fields = {field.name: field for field in fields_of(input_schema)}
    found: dict[str, Any] = {}
    for word in words:
        name, separator, text = word.partition("=")
        if not separator:
            raise usage_error(
                f"{word!r} is neither name=value nor a JSON object. "
                'A value with spaces is in double quotes: name="two words".'
            )
        field = fields.get(name)
        # Only a schema for further properties shows that a tool takes them; otherwise it is a misspelling.
        if field is None and not isinstance(input_schema.get("additionalProperties"), dict):
            known = (
                f"no argument {name}; {hint(name, [*fields])}" if fields else f"no arguments: remove {name}"
            )
            raise usage_error(f"The tool has {known}")
        try:
            found[name] = (field or Field(name, {}, True)).read(text)
        except ValueError as error:
            raise usage_error(f"The argument {name} {error}.") from None
    return {name: value for name, value in found.items() if value is not UNSET}
