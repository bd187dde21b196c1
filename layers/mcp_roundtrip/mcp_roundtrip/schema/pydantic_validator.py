"""pydantic's validator for data that a JSON Schema has accepted: it makes the typed value.

pydantic's core schema is changed so that it accepts what the JSON Schema accepts, in bounded time:

- A union takes an alternative whose JSON Schema accepts the value. pydantic takes true for 1, and 1.0 for
  true, and reads more: a `datetime` without a time zone, a `timedelta` from "1 day", a set with repeated
  items. In `datetime | str` it would read some texts as a `datetime`.
- Two names of an object that are one key, such as "1" and "1.0" of a `dict[float, ...]`, are refused.
- A pattern of the JSON Schema is not matched again: two engines read `\\s` and `\\W` differently.
- The first invalid item ends the validation of a list, so that the number of errors is bounded.
- Different values with one hash, for which a set takes quadratic time, values in strings of JSON, hosts in
  URLs, e-mail addresses, and the time to choose alternatives are limited.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from contextvars import ContextVar
from enum import Enum
from functools import cache, partial
from sys import hash_info
from typing import Any, Final

from msgspec import Struct, field
from pydantic.errors import PydanticUserError
from pydantic_core import PydanticCustomError, SchemaValidator, ValidationError, core_schema

from mcp_roundtrip.internal_errors import InvalidValue, format_location
from mcp_roundtrip.protocol.strict_json import count_json_values
from mcp_roundtrip.schema.core_schema_traversal import (
    CoreSchema,
    children,
    definitions_of,
    dereference,
    option_json,
    options_of,
    transform,
)
from mcp_roundtrip.schema.error_texts import REFUSED_CHOICE, describe_errors
from mcp_roundtrip.schema.explain_invalid_json import compile_schema
from mcp_roundtrip.schema.json_schema_generator import JsonSchemaGenerator
from mcp_roundtrip.schema.validation_cost import value_size

_HASHED: Final = {
    **dict.fromkeys(("set", "frozenset"), "items_schema"),
    **dict.fromkeys(("dict", "ordered-dict", "counter"), "keys_schema"),
}
"""Types of core schemas that hash values -> the member that describes those values."""

_ONE_SPELLING: Final = frozenset({"str", "int", "bool", "literal", "enum", "any"})
"""Types of keys of which each has one name in JSON."""

_JSON_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int", "float", "bool", "none"), "number"),
    **dict.fromkeys(("list", "set", "frozenset", "tuple", "deque", "generator"), "array"),
    **dict.fromkeys(("model", "typed-dict", "dataclass", "dict"), "object"),
    **dict.fromkeys(("str", "bytes", "uuid", "url", "decimal"), "string"),
}
"""Types of core schemas -> the JSON that they read. Others may read any, such as a datetime a number."""

_SCALARS: Final = (str, int, float, type(None))
"""Options of enumerations that pydantic finds by their JSON. It would not find a tuple, or a member."""

_EMAILS: Final = "pydantic.networks"
"""The module of EmailStr and NameEmail, whose functions take up to half a millisecond for an address."""

_CONVERSIONS: Final = ("strip_whitespace", "to_lower", "to_upper")

Accepts = Callable[[Any], bool]


class _TooManyChoices(Exception):
    pass


def typed_validator(
    schema: CoreSchema, patterns: Collection[str] = (), *, config: Any = None, of_step: bool = False
) -> SchemaValidator:
    """Return the validator for a type. `patterns` are those that the JSON Schema has checked.

    `of_step`: members have the names of fields, and bytes are Base64.
    """
    changed = transform(schema, _Changes(patterns, definitions_of(schema), of_step).change)
    # Otherwise models use the validators that they have, without the changes.
    return SchemaValidator(changed, config, _use_prebuilt=False)


def is_misread(schema: CoreSchema) -> bool:
    """Return whether pydantic's own validator may take true for 1 here, or finds no option by its JSON."""
    if schema["type"] == "union":
        return any(each["type"] == "bool" for _, each in children(schema))
    return not all(isinstance(each, _SCALARS) for each in options_of(schema))


def read_typed(validator: SchemaValidator, text: str, root: str) -> Any:
    """Return the value of the type from JSON text with the name `root`. Raises InvalidValue."""
    counts = _counts.set(_Counts())
    try:
        return validator.validate_json(text, strict=False, by_alias=True, by_name=False)
    except ValidationError as error:
        raise invalid_value(error, root) from None
    except _TooManyChoices as error:
        raise InvalidValue(f"{format_location(root, ())}: {error}") from None
    finally:
        _counts.reset(counts)


def invalid_value(error: ValidationError, root: str) -> InvalidValue:
    """Return pydantic's errors about a value with the name `root`."""
    return InvalidValue(describe_errors(error, root), partial(describe_errors, error, root, for_log=True))


class _Changes(Struct, frozen=True):
    patterns: Collection[str]
    definitions: Mapping[str, CoreSchema]
    of_step: bool

    def change(self, schema: dict[str, Any], original: CoreSchema) -> dict[str, Any]:
        kind = schema.get("type")
        match kind:
            case "union":
                schema["choices"] = self._checked_choices(schema, original)
            case "str" if schema.get("pattern") in self.patterns:
                del schema["pattern"]
            case "enum" | "literal" if is_misread(schema):
                members = schema.get("members") or options_of(schema)
                by_json = {option_json(each, is_base64=self.of_step): each for each in members}
                return _wrapped(partial(_read_option, by_json), schema)
            case "tagged-union":
                tags = [tag for tag in schema["choices"] if isinstance(tag, Enum)]
                schema["choices"] |= {tag.value: schema["choices"][tag] for tag in tags}
            case "json" | "multi-host-url":  # pydantic keeps a URL of 130 bytes for each host
                return _wrapped(partial(_read_nested, kind), schema)
            case "function-after" if getattr(schema["function"]["function"], "__module__", "") == _EMAILS:
                return _wrapped(partial(_read_nested, "email"), schema)
        if kind in ("list", "set", "frozenset", "tuple", "dict"):
            schema["fail_fast"] = True
        if kind in _HASHED:
            hashed = schema.get(_HASHED[kind]) or core_schema.any_schema()
            schema[_HASHED[kind]] = core_schema.no_info_after_validator_function(_limit_collisions, hashed)
            keys = original.get("keys_schema", {"type": "any"})
            if keys["type"] not in _ONE_SPELLING or not keys.keys().isdisjoint(_CONVERSIONS):
                return _wrapped(_read_keys, schema)
        return schema

    def _checked_choices(self, changed: Mapping[str, Any], union: CoreSchema) -> list[tuple[Any, str]]:
        """Let each choice read only what its JSON Schema accepts, unless no other choice reads the value."""
        choices = [choice for _, choice in children(union)]
        labels = [each[1] if isinstance(each, tuple) else self._label(each) for each in union["choices"]]
        kinds = [self._json_kind(each) for each in choices]
        whole = self._accepts({"type": "union", "choices": choices})
        found = [choice for _, choice in children(changed)]
        for number, choice in enumerate(choices):
            others = {kind for other, kind in enumerate(kinds) if other != number}
            is_ambiguous = not kinds[number] or not others.isdisjoint({kinds[number], ""})
            if is_ambiguous:
                check = partial(_read_choice, self._accepts(choice), whole, len(choices))
                found[number] = _wrapped(check, found[number])
        return list(zip(found, labels, strict=True))

    def _accepts(self, schema: Any) -> Accepts:
        """Return the check by the JSON Schema of a type, which is compiled for the first value."""
        whole = {"type": "definitions", "schema": schema, "definitions": [*self.definitions.values()]}

        @cache
        def compiled() -> Any:
            with suppress(PydanticUserError):  # pydantic cannot describe the type
                return compile_schema(JsonSchemaGenerator(not self.of_step).generate(whole))
            return None

        def accepts(value: Any) -> bool:
            try:
                return (validator := compiled()) is None or bool(validator.is_valid(value))
            except (TypeError, ValueError):  # not JSON: an author's validator around the union has made it
                return True

        return accepts

    def _json_kind(self, choice: CoreSchema) -> str:
        """Return the kind of JSON that a choice reads, or "" for any."""
        return _JSON_KINDS.get(dereference(choice, self.definitions)["type"], "")

    def _label(self, choice: CoreSchema) -> str:
        """Return the name of a choice in the places of errors."""
        while choice["type"].startswith("function-") and "schema" in choice:
            choice = choice["schema"]
        choice = dereference(choice, self.definitions)
        return getattr(choice.get("cls"), "__name__", None) or str(choice["type"])


def _read_option(options: Mapping[bytes, Any], value: Any, read: Callable[[Any], Any]) -> Any:
    return read(options.get(option_json(value), value))


def _wrapped(check: Callable[[Any, Callable[[Any], Any]], Any], schema: Any) -> dict[str, Any]:
    """Return a schema whose values `check` reads, with a function that reads the schema."""
    ref = schema.pop("ref", None)  # references lead to the outer schema
    return {**core_schema.no_info_wrap_validator_function(check, schema, ref=ref)}


def _read_choice(
    accepts: Accepts, union: Accepts, choices: int, value: Any, read: Callable[[Any], Any]
) -> Any:
    _limit_choosing(2 * value_size(value) + choices // 20)
    # No choice accepts what a validator around the union has converted: pydantic decides.
    if accepts(value) or not union(value):
        try:
            return read(value)
        except ValidationError as error:  # of the author's validators: each level of choices doubles them
            _limit_choosing(ERROR_US * error.error_count())
            raise
    raise PydanticCustomError(REFUSED_CHOICE, "Input should fit another alternative")


def _read_keys(value: Any, read: Callable[[Any], Any]) -> Any:
    found = read(value)
    if len(found) < len(value):
        problem = "Input has names that are one key, such as 1 and 1.0; write each key once"
        raise PydanticCustomError("one_key", problem)
    return found


# -- limits on one input

MAX_COLLISIONS: Final = 64
"""Different values with one hash in the sets and keys of a request; two are rare by chance."""

MAX_NESTED_VALUES: Final = 20_000
"""JSON values, hosts, and tens of characters of e-mail addresses within the strings of a request."""

MAX_CHOOSING_US: Final = 500_000
ERROR_US: Final = 20
"""Microseconds to choose alternatives for the values of a request, and for each error of an alternative."""


class _Counts(Struct):
    by_hash: dict[int, set[int]] = field(default_factory=dict)
    nested_values: int = 0
    choosing_us: int = 0


_counts: ContextVar[_Counts | None] = ContextVar("counts", default=None)
"""The counts of a client's input; None while a value of the author is read."""


def _limit_collisions(value: Any) -> Any:
    """Return a value for a set, or a key. Raises PydanticCustomError for too many with its hash."""
    counts = _counts.get()
    # A small integer is its own hash, so two of them do not collide.
    if counts is None or isinstance(value, str) or (type(value) is int and abs(value) < hash_info.modulus):
        return value
    try:
        colliding = counts.by_hash.setdefault(hash(value), set())
    except TypeError:  # of the key of a dict, pydantic would raise the TypeError itself
        raise PydanticCustomError("unhashable", "Input should be hashable") from None
    colliding.add(hash(repr(value)))
    if len(colliding) > MAX_COLLISIONS:
        problem = f"More than {MAX_COLLISIONS} different values have the same hash; send fewer at once"
        raise PydanticCustomError("equal_hashes", problem)
    return value


def _limit_choosing(microseconds: int) -> None:
    """Count time to choose an alternative. Raises _TooManyChoices, which ends the validation."""
    if (counts := _counts.get()) is not None:
        counts.choosing_us += microseconds
        if counts.choosing_us > MAX_CHOOSING_US:
            raise _TooManyChoices(
                "Input has too many values for its alternatives; send fewer, or less deep ones"
            )


def _read_nested(kind: str, value: Any, read: Callable[[Any], Any]) -> Any:
    """Read a text of JSON, a URL, or an e-mail address. Raises PydanticCustomError if there is too much."""
    counts, limit = _counts.get(), MAX_NESTED_VALUES
    if isinstance(value, str) and counts is not None:
        match kind:
            case "json":
                count, counted = count_json_values(value, limit), f"{limit} values in strings of JSON"
            case "email":
                count, counted = len(value) // 10, f"{10 * limit} characters of e-mail addresses"
            case _:
                count, counted = value.count(","), f"{limit} hosts in URLs"
        counts.nested_values += count
        if counts.nested_values > limit:
            problem = f"More than {counted}; send fewer at once"
            raise PydanticCustomError("too_many_nested_values", problem)
    return read(value)
