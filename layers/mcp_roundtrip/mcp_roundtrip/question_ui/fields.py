"""The fields of a form: made from the properties of a `requestedSchema`, read from posted values.

A property is a PrimitiveSchemaDefinition (MCP 2026-07-28, schema.json) of `arguments.elicitation_form`.
Choices are posted by their positions, so that any text can be an option.

The checks let the user correct a slip before the form is gone. They are no stricter than the schema, by which
the server validates each answer again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from math import isfinite
from typing import Any, Final

from msgspec import UNSET, Struct

MAX_DIGITS: Final = 400

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_INTEGER: Final = re.compile(r"[+-]?\d+")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,4})?")
# Browsers show milliseconds at most.
_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d(?:\.\d{1,3})?)\d*([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_POSTED_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d{1,9})?([+-]\d\d:\d\d)", re.ASCII
)


class FieldError(ValueError):
    """A posted value is not an answer. The message says what to enter."""


class FormField(Struct, frozen=True):
    """A field of a form, for the property `key`. A browser posts its values, which are strings, as `name`."""

    name: str
    key: str
    title: str
    description: str
    required: bool

    def initial(self) -> tuple[str, ...]:
        """Return the values that show the default."""
        raise NotImplementedError

    def read(self, values: Sequence[str]) -> Any:
        """Return the property's value, or UNSET if the answer does not contain it. Raises FieldError."""
        raise NotImplementedError

    def hint(self) -> str:
        """Return the constraints in words, or ""."""
        return ""

    def _missing(self, request: str) -> Any:
        """Return UNSET. Raises FieldError with `request` if the property is required."""
        if self.required:
            raise FieldError(request)
        return UNSET


class TextField(FormField, frozen=True):
    """A string. `format` is one of the specification's, or None."""

    format: str | None = None
    min_length: int = 0
    max_length: int | None = None
    default: str | None = None

    def initial(self) -> tuple[str, ...]:
        return (self.default or "",)

    def read(self, values: Sequence[str]) -> Any:
        text = _only(values)
        if not text:
            # Without the property, the default would count, and the user has removed it.
            is_removed = self.default and not self.min_length and self.format is None
            return "" if is_removed and not self.required else self._missing("Enter an answer.")
        if self.format is not None:
            text = text.strip()
        if len(text) < self.min_length:
            raise FieldError(f"Enter at least {self.min_length} characters: there are {len(text)}.")
        if self.max_length is not None and len(text) > self.max_length:
            raise FieldError(f"Enter at most {self.max_length} characters: there are {len(text)}.")
        if self.format == "email" and not _EMAIL.fullmatch(text):
            raise FieldError("Enter an e-mail address, such as name@example.com.")
        if self.format == "uri" and not _URI.fullmatch(text):
            raise FieldError("Enter a complete address, such as https://example.com/.")
        if self.format == "date" and not _is_date(text):
            raise FieldError("Enter a date: year-month-day, such as 2026-07-28.")
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


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII) is not None


class DateTimeField(FormField, frozen=True):
    """A date-time with an offset (RFC 3339). Its values are the local time and the offset."""

    default: str | None = None

    def initial(self) -> tuple[str, ...]:
        found = _DATE_TIME.fullmatch(self.default or "")
        if found is None:
            return ("", "+00:00")
        return f"{found[1]}T{found[2]}", "+00:00" if found[3] in "Zz" else found[3]

    def read(self, values: Sequence[str]) -> Any:
        if len(values) != 2:
            raise FieldError("Enter a date and a time.")
        local, offset = values[0].strip(), values[1]
        if not local:
            return self._missing("Enter a date and a time.")
        if re.fullmatch(r"[^T ]*[T ]\d\d:\d\d", local):
            local += ":00"  # browsers leave out seconds that are zero
        text = f"{local.replace(' ', 'T')}{offset}"
        try:
            found = _POSTED_DATE_TIME.fullmatch(text)
            datetime.fromisoformat("" if found is None else found[1] + found[2])
        except ValueError:
            raise FieldError("Enter a date and a time, such as 2026-07-28 14:30.") from None
        return text


class NumberField(FormField, frozen=True):
    """A number or an integer."""

    is_integer: bool
    minimum: int | float | None = None
    maximum: int | float | None = None
    default: int | float | None = None

    def initial(self) -> tuple[str, ...]:
        return ("" if self.default is None else format_number(self.default),)

    def read(self, values: Sequence[str]) -> Any:
        text = _only(values).strip().replace("\N{MINUS SIGN}", "-")
        if not text:
            return self._missing(f"Enter {self._kind}.")
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


class ChoiceField(FormField, frozen=True):
    """One of several values, each with a title: an enumeration of strings, or a boolean."""

    options: tuple[tuple[str | bool, str], ...]
    default: str | bool | None = None

    def initial(self) -> tuple[str, ...]:
        positions = (str(number) for number, (value, _) in enumerate(self.options) if value == self.default)
        return (next(positions, ""),)

    def read(self, values: Sequence[str]) -> Any:
        chosen = _only(values)
        return _option(self.options, chosen) if chosen else self._missing("Choose an answer.")


class MultipleChoiceField(FormField, frozen=True):
    """Any of several strings, each with a title."""

    options: tuple[tuple[str | bool, str], ...]
    min_items: int = 0
    max_items: int | None = None
    default: Sequence[str] | None = None

    def initial(self) -> tuple[str, ...]:
        chosen = set(self.default or ())
        return tuple(str(number) for number, (value, _) in enumerate(self.options) if value in chosen)

    def read(self, values: Sequence[str]) -> Any:
        if len(set(values)) < len(values):
            raise FieldError("Choose each answer once.")
        chosen = [_option(self.options, value) for value in values]
        if not chosen and not self.required and self.default is None:
            return UNSET
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


def make_field(
    name: str, key: str, schema: Mapping[str, Any], *, required: bool, fallback_title: str = ""
) -> FormField:
    """Return the field of a property. `fallback_title` replaces a missing title; else the key does."""
    title = schema.get("title") or fallback_title or _title_of(key)
    texts = (name, key, title, schema.get("description") or "", required)
    default = schema.get("default")
    match schema["type"]:
        case "boolean":
            return ChoiceField(*texts, ((True, "Yes"), (False, "No")), default)
        case "integer" | "number" as kind:
            bounds = (schema.get("minimum"), schema.get("maximum"))
            return NumberField(*texts, kind == "integer", *bounds, default)
        case "array":
            bounds = (schema.get("minItems", 0), schema.get("maxItems"))
            return MultipleChoiceField(*texts, _options(schema["items"], "anyOf"), *bounds, default)
    if "enum" in schema or "oneOf" in schema:
        return ChoiceField(*texts, _options(schema, "oneOf"), default)
    if schema.get("format") == "date-time":
        return DateTimeField(*texts, default)
    lengths = (schema.get("minLength", 0), schema.get("maxLength"))
    return TextField(*texts, schema.get("format"), *lengths, default)


def _title_of(key: str) -> str:
    """Return the title of a property that has none: "Size Gb" for size_gb and sizeGb. Other names stay."""
    if not re.fullmatch(r"\w+", key, re.ASCII):
        return key
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", key.replace("_", " ")).split()
    return " ".join(word[:1].upper() + word[1:] for word in words) or key


def _options(schema: Mapping[str, Any], titled: str) -> tuple[tuple[str, str], ...]:
    if titled in schema:
        return tuple((option["const"], option["title"]) for option in schema[titled])
    return tuple((value, value) for value in schema["enum"])


def _option(options: Sequence[tuple[str | bool, str]], position: str) -> str | bool:
    if not re.fullmatch(r"\d{1,6}", position, re.ASCII) or int(position) >= len(options):
        raise FieldError("Choose one of the answers shown.")
    return options[int(position)][0]


def _only(values: Sequence[str]) -> str:
    if len(values) > 1:
        raise FieldError("Enter one answer.")
    return values[0] if values else ""
