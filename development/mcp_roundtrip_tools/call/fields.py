"""Fields of forms and arguments of tools: what a user may enter, by JSON Schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from mcp_roundtrip_tools.call.schemas import usable_schema

YES: Final = ("y", "yes", "true", "1", "on")
NO: Final = ("n", "no", "false", "0", "off")

UNSET: Final = object()
"""The value of a field that is left out."""


@dataclass(frozen=True, slots=True)
class Option:
    """A choice. `title` is what the user reads."""

    value: Any
    title: str


@dataclass(frozen=True)
class Field:
    """A member of an object. `default` is UNSET if there is none."""

    name: str
    schema: Mapping[str, Any]
    is_required: bool
    default: Any = UNSET

    @property
    def label(self) -> str:
        """What the user reads; the name of a single value says nothing."""
        title = self.schema.get("title")
        return title if isinstance(title, str) and title else self.name

    @property
    def kind(self) -> str:
        """The type in the schema: that of the only branch besides null, "array", "object" or "string"."""
        kinds = [each for each in _types(self.schema) if each != "null"]
        return kinds[0] if len(kinds) == 1 else "json"

    @property
    def options(self) -> tuple[Option, ...]:
        """The choices of the field, or of the members of its list; empty if every value is allowed."""
        found = _options(self.schema)
        items = self.schema.get("items")
        return found or (_options(items) if isinstance(items, dict) else ())

    def hint(self) -> str:
        """Return what the user may enter, in brackets."""
        if self.kind == "array" and self.options:
            allowed = "numbers, separated by commas"
        elif self.options:
            allowed = f"1-{len(self.options)}"
        elif self.kind == "boolean":
            return {True: "[Y/n]", False: "[y/N]"}.get(self.default, "[y/n]")
        else:
            allowed = _HINTS.get(self.kind, "") or _FORMATS.get(self.schema.get("format", ""), "")
        if self.default is not UNSET:
            allowed += f"{', ' if allowed else ''}default {self._shown(self.default)}"
        elif not self.is_required:
            allowed += f"{', ' if allowed else ''}optional"
        return f"[{allowed}]" if allowed else ""

    def read(self, text: str) -> Any:
        """Return the value of a text; UNSET for an optional field without text. Raises ValueError."""
        entered = text.strip() if self.kind != "string" or self.options else text
        if not entered:
            return self._without_text()
        if self.kind == "array":
            return self._read_list(entered)
        value = _choice(self.options, entered) if self.options else _READERS[self.kind](entered)
        _check(self.schema, value)
        return value

    def _without_text(self) -> Any:
        if self.default is not UNSET:
            return self.default
        if self.is_required and (self.kind != "string" or self.options or self.schema.get("minLength")):
            raise ValueError("a value is required")
        return "" if self.is_required else UNSET

    def _read_list(self, entered: str) -> list[Any]:
        if entered.startswith("["):
            value = _json(entered)
        else:
            texts = [each.strip() for each in entered.split(",") if each.strip()]
            items = self.schema.get("items")
            kind = Field("", items if isinstance(items, dict) else {}, True).kind
            read = (lambda text: _choice(self.options, text)) if self.options else _READERS[kind]
            value = [read(each) for each in texts]
        if not isinstance(value, list):
            raise ValueError("must be a list")
        _check_bounds(len(value), self.schema.get("minItems"), self.schema.get("maxItems"), "{} values")
        return value

    def _shown(self, value: Any) -> str:
        titles = {json.dumps(option.value): str(number) for number, option in enumerate(self.options, 1)}
        if isinstance(value, list):
            return ",".join(titles.get(json.dumps(each), str(each)) for each in value)
        return titles.get(json.dumps(value), str(value))


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Return the fields of an object's schema, which may be nonsensical."""
    schema = usable_schema(schema)
    required = schema.get("required", ())
    definitions = schema.get("$defs", {})
    members = {name: _inlined(each, definitions) for name, each in schema.get("properties", {}).items()}
    return tuple(
        Field(name, member, name in required, member.get("default", UNSET))
        for name, member in members.items()
    )


def _inlined(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return {**definitions.get(name, {}), **schema} if name else schema


def _types(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, list):
        return kind
    if isinstance(kind, str):
        return [kind]
    branches = schema.get("anyOf") or schema.get("oneOf") or ()
    found = [name for branch in branches if isinstance(branch, dict) for name in _types(branch)]
    if not found and (schema.get("enum") or branches or "const" in schema):
        return ["string"]
    return list(dict.fromkeys(found))


def _options(schema: Mapping[str, Any]) -> tuple[Option, ...]:
    if "enum" in schema:
        titles = schema.get("enumNames") or schema["enum"]
        return tuple(Option(value, str(title)) for value, title in zip(schema["enum"], titles, strict=False))
    branches = schema.get("oneOf") or schema.get("anyOf") or ()
    if not branches or not all(isinstance(branch, dict) and "const" in branch for branch in branches):
        return ()
    return tuple(Option(branch["const"], str(branch.get("title", branch["const"]))) for branch in branches)


def _choice(options: tuple[Option, ...], entered: str) -> Any:
    """Return the value of a number, of a value, or of the only title that contains the text."""
    for option in options:
        if entered == str(option.value):
            return option.value
    if entered.isdecimal() and 0 < int(entered) <= len(options):
        return options[int(entered) - 1].value
    found = [option for option in options if entered.casefold() in option.title.casefold()]
    exact = [option for option in found if entered.casefold() == option.title.casefold()]
    if len(exact or found) == 1:
        return (exact or found)[0].value
    fits = f"fits {len(found)} choices; it " if found else ""
    raise ValueError(f"{fits}must be a number from 1 to {len(options)}")


def _boolean(text: str) -> bool:
    if text.lower() in YES:
        return True
    if text.lower() in NO:
        return False
    raise ValueError("must be y or n")


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError("must be a whole number") from None


def _number(text: str) -> float | int:
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        raise ValueError("must be a number") from None
    if value - value != 0:  # infinite, or not a number
        raise ValueError("must be a finite number")
    return value


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise ValueError(f"must be JSON: {error}") from None


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "string": str,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "object": _json,
    "array": _json,
    "null": _json,
    "json": _json_or_text,
}

_HINTS: Final = {
    "integer": "whole number",
    "number": "number",
    "array": "values, separated by commas",
    "object": "JSON",
    "json": "JSON or text",
}

_FORMATS: Final = {
    "date": "YYYY-MM-DD",
    "date-time": "YYYY-MM-DDThh:mm:ssZ",
    "email": "email address",
    "uri": "URL",
}


def _check(schema: Mapping[str, Any], value: Any) -> None:
    """Raise ValueError with the reason if a value does not fit. The server checks everything again."""
    if isinstance(value, str):
        _check_bounds(len(value), schema.get("minLength"), schema.get("maxLength"), "{} characters")
        _check_format(str(schema.get("format", "")), value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        _check_bounds(value, schema.get("minimum"), schema.get("maximum"), "{}")


def _check_bounds(value: float, least: float | None, most: float | None, unit: str) -> None:
    if least is not None and value < least:
        raise ValueError(f"must be at least {unit.format(least)}")
    if most is not None and value > most:
        raise ValueError(f"must be at most {unit.format(most)}")


def _check_format(name: str, text: str) -> None:
    try:
        if name == "date":
            date.fromisoformat(text)
        elif name == "date-time":
            datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"must look like {_FORMATS[name]}") from None
    if name == "email" and not re.fullmatch(r"[^@\s]+@[^@\s]+", text):
        raise ValueError("must be an email address")
    if name == "uri" and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", text):
        raise ValueError("must be a URL with its scheme")
