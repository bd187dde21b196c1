"""The fields of a form: made from the properties of a `requestedSchema`, read from posted values.

A property is one of PrimitiveSchemaDefinition (MCP 2026-07-28, schema.json). Choices are posted by their
positions, so that any text can be an option. A property of another form becomes a text field: the server
validates every answer again and asks again with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final, Protocol

from msgspec import Struct

from mcp_roundtrip.question_ui.texts import check_text

MISSING: Final = object()
"""The field was left empty, and the answer does not contain it."""

MAX_DIGITS: Final = 400

_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")


class FieldError(ValueError):
    """A posted value is not an answer. The text says what to enter."""


class Label(Struct, frozen=True):
    """The texts of a field: `key` is the property's name."""

    key: str
    title: str
    description: str = ""
    required: bool = False


class FormField(Protocol):
    """A field of a form. Its values are the strings that a browser posts for it."""

    @property
    def label(self) -> Label: ...

    def initial(self) -> tuple[str, ...]:
        """Return the values that show the default."""
        ...

    def read(self, values: Sequence[str]) -> Any:
        """Return the property's value, or MISSING. Raises FieldError."""
        ...

    def hint(self) -> str:
        """Return what the constraints require, in words; empty if they require nothing."""
        ...


class TextField(Struct, frozen=True):
    """A string. `format` is one of the specification's four, or None."""

    label: Label
    format: str | None = None
    min_length: int = 0
    max_length: int | None = None
    default: str | None = None

    def initial(self) -> tuple[str, ...]:
        return (self.default or "",)

    def read(self, values: Sequence[str]) -> Any:
        text = _only(values)
        if not text:
            if self.label.required:
                raise FieldError("Enter an answer.")
            # Without the property, the default would count, which the user has removed.
            return "" if self.default and not self.min_length and self.format is None else MISSING
        if self.format is not None:
            text = text.strip()
        if problem := check_text(text, self):
            raise FieldError(problem)
        return text

    def hint(self) -> str:
        low, high = self.min_length, self.max_length
        lengths = ""
        if high is not None:
            lengths = f"{low} to {high} characters." if low else f"At most {high} characters."
        elif low > 1:
            lengths = f"At least {low} characters."
        example = {"email": "An e-mail address.", "uri": "A complete address, such as https://example.com/."}
        return f"{example.get(self.format or '', '')} {lengths}".strip()


class DateTimeField(Struct, frozen=True):
    """A date-time with an offset (RFC 3339). Its values are the local time and the offset."""

    label: Label
    default: str | None = None

    def initial(self) -> tuple[str, ...]:
        found = _DATE_TIME.fullmatch(self.default or "")
        return ("", "+00:00") if found is None else (f"{found[1]}T{found[2]}", _offset(found[3]))

    def read(self, values: Sequence[str]) -> Any:
        if len(values) != 2:
            raise FieldError("Enter a date and a time.")
        local, offset = values[0].strip(), values[1]
        if not local:
            if self.label.required:
                raise FieldError("Enter a date and a time.")
            return MISSING
        if re.fullmatch(r"[^T ]*[T ]\d\d:\d\d", local):
            local += ":00"  # browsers leave out seconds that are zero
        text = f"{local.replace(' ', 'T')}{offset}"
        if problem := check_text(text, TextField(self.label, "date-time")):
            raise FieldError(problem)
        return text

    def hint(self) -> str:
        return ""


# Browsers show milliseconds at most.
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*([Zz]|[+-]\d\d:\d\d)", re.ASCII
)


def _offset(text: str) -> str:
    return "+00:00" if text in ("Z", "z") else text


class NumberField(Struct, frozen=True):
    """A number or an integer."""

    label: Label
    is_integer: bool
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: int | float | None = None

    def initial(self) -> tuple[str, ...]:
        return ("" if self.default is None else format_number(self.default),)

    def read(self, values: Sequence[str]) -> Any:
        text = _only(values).strip().replace("\N{MINUS SIGN}", "-")
        if not text:
            if self.label.required:
                raise FieldError(f"Enter {self._kind}.")
            return MISSING
        number = self._parse(text)
        low, high = self.minimum, self.maximum
        if (low is not None and number < low) or (high is not None and number > high):
            raise FieldError(f"Enter {self._kind}: {self.hint()[:1].lower()}{self.hint()[1:]}")
        return number

    @property
    def _kind(self) -> str:
        return "a whole number" if self.is_integer else "a number"

    def _parse(self, text: str) -> int | float:
        if len(text) <= MAX_DIGITS:
            if _INTEGER.fullmatch(text):
                return int(text)
            if not self.is_integer and _NUMBER.fullmatch(text) and isfinite(number := float(text)):
                return number
        raise FieldError(f"Enter {self._kind}{'' if self.is_integer else ', such as 1.5'}.")

    def hint(self) -> str:
        low, high = self.minimum, self.maximum
        if low is not None and high is not None:
            return f"From {format_number(low)} to {format_number(high)}."
        if low is not None:
            return f"At least {format_number(low)}."
        return "" if high is None else f"At most {format_number(high)}."


class ChoiceField(Struct, frozen=True):
    """One of several values, each with a title: an enumeration of strings, or a boolean."""

    label: Label
    options: tuple[tuple[str | bool, str], ...]
    default: str | bool | None = None

    def initial(self) -> tuple[str, ...]:
        return (_position(self.options, self.default),)

    def read(self, values: Sequence[str]) -> Any:
        chosen = _only(values or ("",))
        if not chosen:
            if self.label.required:
                raise FieldError("Choose an answer.")
            return MISSING
        return _option(self.options, chosen)

    def hint(self) -> str:
        return ""


class MultipleChoiceField(Struct, frozen=True):
    """Any of several strings, each with a title."""

    label: Label
    options: tuple[tuple[str | bool, str], ...]
    min_items: int = 0
    max_items: int | None = None
    default: tuple[str, ...] | None = None

    def initial(self) -> tuple[str, ...]:
        chosen = set(self.default or ())
        return tuple(str(number) for number, (value, _) in enumerate(self.options) if value in chosen)

    def read(self, values: Sequence[str]) -> Any:
        if len(set(values)) < len(values):
            raise FieldError("Choose each answer once.")
        chosen = [_option(self.options, value) for value in values]
        if not chosen and not self.label.required and self.default is None:
            return MISSING
        if len(chosen) < self.min_items or (self.max_items is not None and len(chosen) > self.max_items):
            raise FieldError(self.hint())
        return chosen

    def hint(self) -> str:
        low, high = self.min_items, self.max_items
        if high is not None:
            if low == high:
                return f"Choose {low}."
            return f"Choose {low} to {high}." if low else f"Choose at most {high}."
        return f"Choose at least {low}." if low else ""


def format_number(number: int | float) -> str:
    """Return a number as a user would type it."""
    whole = isinstance(number, float) and number.is_integer() and abs(number) < 1e15
    return str(int(number)) if whole else str(number)


def make_field(key: str, schema: Mapping[str, Any], *, required: bool, fallback_title: str = "") -> FormField:
    """Return the field of a property. `fallback_title` replaces a missing title; else the name does."""
    title = schema.get("title") or fallback_title or _title_of(key)
    label = Label(key, str(title), str(schema.get("description") or ""), required)
    default = schema.get("default")
    match schema.get("type"):
        case "boolean":
            known = default if isinstance(default, bool) else None
            return ChoiceField(label, ((True, "Yes"), (False, "No")), known)
        case "integer" | "number" as kind:
            bounds = (_number(schema.get("minimum")), _number(schema.get("maximum")))
            return NumberField(label, kind == "integer", *bounds, _number(default))
        case "array":
            options = _options(schema.get("items", {}), "anyOf")
            chosen = tuple(map(str, default)) if isinstance(default, list) else None
            bounds_of = (schema.get("minItems", 0), schema.get("maxItems"))
            return MultipleChoiceField(label, options, *bounds_of, chosen)
    if "enum" in schema or "oneOf" in schema:
        return ChoiceField(label, _options(schema, "oneOf"), default)
    text = default if isinstance(default, str) else None
    if schema.get("format") == "date-time":
        return DateTimeField(label, text)
    lengths = (schema.get("minLength", 0), schema.get("maxLength"))
    return TextField(label, schema.get("format"), *lengths, text)


def _title_of(key: str) -> str:
    """Return the title of a property that has none: "Size Gb" for size_gb and sizeGb. Other names stay."""
    if not re.fullmatch(r"\w+", key, re.ASCII):
        return key
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key.replace("_", " ")).split()
    return " ".join(word[:1].upper() + word[1:] for word in words) or key


def _options(schema: Mapping[str, Any], titled: str) -> tuple[tuple[str | bool, str], ...]:
    if titled in schema:
        return tuple((option["const"], option.get("title") or option["const"]) for option in schema[titled])
    values = schema.get("enum", [])
    names = schema.get("enumNames", [])  # LegacyTitledEnumSchema
    return (
        tuple(zip(values, names, strict=True))
        if len(names) == len(values)
        else tuple(zip(values, values, strict=True))
    )


def _number(value: Any) -> int | float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _position(options: Sequence[tuple[str | bool, str]], value: str | bool | None) -> str:
    found = (str(number) for number, (option, _) in enumerate(options) if option == value)
    return "" if value is None else next(found, "")


def _option(options: Sequence[tuple[str | bool, str]], position: str) -> str | bool:
    if not re.fullmatch(r"\d{1,6}", position, re.ASCII) or int(position) >= len(options):
        raise FieldError("Choose one of the answers shown.")
    return options[int(position)][0]


def _only(values: Sequence[str]) -> str:
    if len(values) > 1:
        raise FieldError("Enter one answer.")
    return values[0] if values else ""
