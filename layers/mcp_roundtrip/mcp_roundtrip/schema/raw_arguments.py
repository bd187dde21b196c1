"""Arguments of a tool with its own JSON Schema (`input_schema=`), validated by jsonschema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import field

from mcp_roundtrip.canonical import exceeds_depth
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.schema.jsonschema_budget import BudgetExceeded, hide_values, validation_budget
from mcp_roundtrip.schema.mcp_header import ParameterHeaders, headers_of_schema
from mcp_roundtrip.schema.patterns import TEXT_TOO_LONG, TextTooLong, pattern_problem, size_problem
from mcp_roundtrip.schema.signature import FunctionArguments, Signature
from mcp_roundtrip.schema.subschemas import subschemas
from mcp_roundtrip.schema.type_adapters import MAX_PROBLEMS, format_location

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

DEFAULT_DIALECT = "https://json-schema.org/draft/2020-12/schema"
DIALECTS = {
    DEFAULT_DIALECT: "Draft202012Validator",
    "https://json-schema.org/draft/2019-09/schema": "Draft201909Validator",
    "http://json-schema.org/draft-07/schema": "Draft7Validator",
    "http://json-schema.org/draft-06/schema": "Draft6Validator",
    "http://json-schema.org/draft-04/schema": "Draft4Validator",
}
"""Supported values of `$schema`, and jsonschema's class for each."""

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_SHALLOW = 8
"""Levels of arguments that every usable schema can check: deeper recursion is the arguments' fault."""


class RawArguments(FunctionArguments, frozen=True, eq=False, dict=True):  # dict: for cached_property
    """The counterpart of `Arguments` for a function that takes all arguments as one dict."""

    input_schema: dict[str, Any]
    parameter_headers: ParameterHeaders = field(default_factory=dict)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        context_types: tuple[type, ...],
        input_schema: Mapping[str, Any],
    ) -> RawArguments:
        """Check `input_schema` without importing jsonschema, and find the parameter that takes the arguments.

        Raises DefinitionError for a root that is not an object schema, an unknown dialect, a `$ref` that
        leaves the document, a schema that exceeds the bounds, an unusable pattern, an `x-mcp-header` that
        clients would refuse, and a function without exactly one parameter besides the context; also if
        jsonschema is not installed.
        """
        signature = Signature.from_function(function, context_types)
        if len(signature.parameters) != 1:
            raise DefinitionError(
                f"{signature.name}: with input_schema= the function takes one parameter besides the context, "
                f"not {len(signature.parameters)}; write `arguments: dict[str, Any]` in their place"
            )
        schema = dict(input_schema)
        try:
            _check(schema)
            parameter_headers = headers_of_schema(schema)
        except DefinitionError as error:
            raise DefinitionError(f"{signature.name}: {error}") from None
        if find_spec("jsonschema") is None:
            raise DefinitionError(
                f"{signature.name}: input_schema= needs jsonschema; run `pip install mcp-roundtrip[schema]`"
            )
        return cls(signature, schema, parameter_headers)

    @property
    def names(self) -> tuple[str, ...]:
        """The names under `properties`."""
        properties = self.input_schema.get("properties")
        return tuple(properties) if isinstance(properties, Mapping) else ()

    def json_schema(self) -> dict[str, Any]:
        """Return the schema as the author wrote it."""
        return self.input_schema

    def type_text(self) -> str:
        """Return the schema as text."""
        return json.dumps(self.input_schema)

    def check(self) -> None:
        """Check the schema against the metaschema of its dialect. Raises DefinitionError."""
        _ = self._validator

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return `{parameter: raw}`.

        Raises ArgumentsError with one line per problem, which quotes no value, and DefinitionError for a
        `$ref` that cannot be resolved.
        """
        from referencing.exceptions import Unresolvable  # jsonschema's own dependency

        arguments = dict(raw)
        try:
            with validation_budget(caches_results=not self._is_dynamic):
                for name in self._refused_nulls(arguments):
                    del arguments[name]
                found = list(islice(_lines(self._validator, hide_values(arguments)), MAX_PROBLEMS + 1))
        except Unresolvable as error:
            raise DefinitionError(
                f"{self.signature.name}: a $ref points to {error.ref!r}, which input_schema does not have; "
                "define it under $defs"
            ) from None
        except TextTooLong:
            raise ArgumentsError(f"arguments: {TEXT_TOO_LONG}") from None
        except BudgetExceeded:
            raise ArgumentsError("arguments: too many values to check at once; send fewer") from None
        except RecursionError:
            if exceeds_depth(arguments, _SHALLOW):
                raise ArgumentsError("arguments: nested too deeply; send fewer levels") from None
            raise DefinitionError(
                f"{self.signature.name}: a $ref of input_schema leads back to itself; remove that $ref"
            ) from None
        if len(found) > MAX_PROBLEMS:
            found[MAX_PROBLEMS:] = ["and more"]
        if found:
            raise ArgumentsError("\n".join(found))
        return {self.signature.parameters[0].name: arguments}

    def _refused_nulls(self, arguments: Mapping[str, Any]) -> list[str]:
        """Return the names of arguments that are null, have a `default`, and whose schema refuses null."""
        if None not in arguments.values():
            return []
        properties = _mapping(self.input_schema.get("properties"))
        optional = [name for name, value in arguments.items() if value is None and name in properties]
        return [
            name
            for name in optional
            if "default" in _mapping(properties[name])
            and not self._validator.evolve(schema=properties[name]).is_valid(None)
        ]

    @cached_property
    def _is_dynamic(self) -> bool:
        dynamic = {"$dynamicRef", "$recursiveRef"}
        return any(not dynamic.isdisjoint(node) for node in subschemas(self.input_schema))

    @cached_property
    def _validator(self) -> Validator:
        import jsonschema  # an extra, and slow to import
        from referencing import Registry

        dialect: type[Validator] = getattr(jsonschema, DIALECTS[_dialect(self.input_schema)])
        try:
            # Registration has checked the patterns with the engine that runs them.
            formats = jsonschema.FormatChecker(formats=())
            dialect.check_schema(self.input_schema, format_checker=formats)  # type: ignore[call-arg]
        except jsonschema.SchemaError as error:
            place = format_location("input_schema", list(error.absolute_path))
            raise DefinitionError(
                f"{self.signature.name}: {place}: {error.message}; write what {_dialect(self.input_schema)} "
                "allows"
            ) from None
        from mcp_roundtrip.schema.jsonschema_keywords import bounded_dialect  # as above

        # jsonschema's default registry fetches unknown documents; an empty one refuses them.
        return bounded_dialect(dialect)(self.input_schema, registry=Registry())


def _dialect(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$schema", DEFAULT_DIALECT)).removesuffix("#")


def _check(schema: dict[str, Any]) -> None:
    if schema.get("type") != "object":
        raise DefinitionError('input_schema is not that of an object; write "type": "object" at its root')
    if _dialect(schema) not in DIALECTS:
        raise DefinitionError(
            f"$schema {schema['$schema']!r} of input_schema is not supported; use one of "
            f"{', '.join(DIALECTS)}"
        )
    for node in subschemas(schema):
        for keyword in _REFERENCES:
            # basic/index "$ref Resolution": network URIs are never dereferenced.
            if keyword in node and not str(node[keyword]).startswith("#"):
                raise DefinitionError(
                    f"{keyword} {node[keyword]!r} of input_schema leaves the document; write '#/$defs/...'"
                )
        limits = dict.fromkeys(_mapping(node.get("patternProperties")))
        if isinstance(pattern := node.get("pattern"), str):
            limits[pattern] = node.get("maxLength")
        for pattern, limit in limits.items():
            problem = pattern_problem(pattern) or size_problem(pattern, _number(limit), '"maxLength": ')
            if problem:
                place = format_location("input_schema", _path_to(node, schema) or ())
                raise DefinitionError(f"{place}: the pattern {pattern!r} {problem}")


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, (int, float)) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _path_to(wanted: Any, node: Any) -> list[str | int] | None:
    """Return the path in `node` to the object `wanted` itself."""
    if wanted is node:
        return []
    children = enumerate(node) if isinstance(node, list) else _mapping(node).items()
    for name, child in children:
        if isinstance(child, (dict, list)) and (path := _path_to(wanted, child)) is not None:
            return [name, *path]
    return None


def _lines(validator: Validator, arguments: dict[str, Any]) -> Iterator[str]:
    seen: set[str] = set()
    for error in validator.iter_errors(arguments):
        for line in _describe(error):
            if line not in seen:  # jsonschema reports the whole `required` for each missing member
                seen.add(line)
                yield line


def _describe(error: ValidationError) -> Iterator[str]:
    """Yield messages with the place and the author's rule; jsonschema's own messages quote the input."""
    path = list(error.absolute_path)
    here = format_location("arguments", path)
    unknown = "unknown member" if path else "unknown argument"
    instance: Any = error.instance
    keyword: Any = error.validator
    rule: Any = error.validator_value
    if keyword == "required":
        missing = (name for name in rule if name not in instance)
        yield from (f"{format_location(here, [name])}: Field required" for name in missing)
    elif keyword == "additionalProperties" and rule is False:
        from mcp_roundtrip.schema.jsonschema_keywords import additional_names  # imports jsonschema

        yield from (
            f"{format_location(here, [name])}: {unknown}" for name in additional_names(instance, error.schema)
        )
    elif keyword == "type":
        yield f"{here}: Input should be of type {rule if isinstance(rule, str) else ' or '.join(rule)}"
    elif keyword is None:  # the subschema `false`
        yield f"{here}: Input is not allowed"
    else:
        yield f"{here}: Input does not satisfy {_rule(keyword, rule)}"


def _rule(keyword: str, value: Any) -> str:
    rule = json.dumps(value, ensure_ascii=False)
    return f"{keyword}: {rule}" if len(rule) <= 200 else keyword
