"""Keywords for jsonschema whose cost is bounded for all data that a client can send.

jsonschema's own keywords compare items with each other, run patterns on an engine that backtracks, collect
all errors of all alternatives, format the data into messages, and check alternatives again for the
unevaluated keywords. These use digests, pydantic's engine, the first error, short reprs and sets. The budget
bounds what still grows faster than the data: alternatives within alternatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from jsonschema import validators
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator

from mcp_roundtrip.schema.jsonschema_budget import ValidationBudget, current_budget

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def bounded_dialect(dialect: type[Validator]) -> type[Validator]:
    """Return `dialect` with these keywords, for one schema only: it caches that schema's enumerations."""
    known: Mapping[str, Keyword] = dialect.VALIDATORS
    ours = {**_KEYWORDS, "enum": _enumeration()}
    keywords = {name: _counting(ours.get(name, keyword)) for name, keyword in known.items()}
    extended: type[Validator] = validators.extend(dialect, keywords)  # type: ignore[no-untyped-call]  # not typed
    return extended


def _counting(keyword: Keyword) -> Keyword:
    def applied(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        current_budget().step()
        return keyword(validator, rule, instance, schema)

    return applied


def _refuse(found: bool) -> Iterator[ValidationError]:
    if found:
        yield ValidationError("")  # `raw_arguments` writes its own messages


def _enumeration() -> Keyword:
    allowed: dict[int, frozenset[bytes]] = {}

    def enumeration(validator: Any, values: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if id(values) not in allowed:
            allowed[id(values)] = frozenset(map(ValidationBudget().digest, values))
        return _refuse(current_budget().digest(instance) not in allowed[id(values)])

    return enumeration


def _const(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    return _refuse(current_budget().digest(instance) != ValidationBudget().digest(value))


def _unique_items(validator: Any, unique: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not unique or not isinstance(instance, list):
        return _refuse(False)
    return _refuse(len(set(map(current_budget().digest, instance))) < len(instance))


def _multiple_of(validator: Any, step: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "number"):
        return _refuse(False)
    if isinstance(step, int) and isinstance(instance, int):
        return _refuse(instance % step != 0)
    try:
        quotient = instance / step
        return _refuse(int(quotient) != quotient)
    except OverflowError:  # beyond every float
        return _refuse((Fraction(instance) / Fraction(step)).denominator != 1)


def _pattern(validator: Any, pattern: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    # A text longer than `maxLength` has that error already, and may cost too much to match.
    is_checked = isinstance(instance, str) and len(instance) <= schema.get("maxLength", len(instance))
    return _refuse(is_checked and not _matches(pattern, instance))


def _pattern_properties(
    validator: Any, patterns: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, subschema in patterns.items():
            for name, member in instance.items():
                if _matches(pattern, name):
                    yield from validator.descend(member, subschema, path=name, schema_path=pattern)


def _matches(pattern: str, text: str) -> bool:
    return current_budget().patterns.matches(pattern, text)


def additional_names(instance: Mapping[str, Any], schema: Any) -> Iterator[str]:
    """Return the names to which `additionalProperties` applies."""
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    return (name for name in instance if name not in known and not any(_matches(p, name) for p in patterns))


def _additional_properties(
    validator: Any, rule: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    if rule is False:
        yield from _refuse(next(additional_names(instance, schema), None) is not None)
    elif rule is not True:
        for name in additional_names(instance, schema):
            yield from validator.descend(instance[name], rule, path=name)


def _at_least_one(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    return _refuse(not any(_is_valid(validator, instance, branch) for branch in branches))


def _exactly_one(validator: Any, branches: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    return _refuse(sum(_is_valid(validator, instance, branch) for branch in branches) != 1)


def _not(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    return _refuse(_is_valid(validator, instance, rule))


def _if(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    branch = "then" if _is_valid(validator, instance, rule) else "else"
    if branch in schema:
        yield from validator.descend(instance, schema[branch], schema_path=branch)


def _is_valid(validator: Any, instance: Any, schema: Any) -> bool:
    return current_budget().is_valid(
        schema, instance, lambda: next(validator.descend(instance, schema), None) is None
    )


# -- the unevaluated keywords ---------------------------------------------------------------------------


def _unevaluated_properties(
    validator: Any, rule: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return _refuse(False)
    evaluated = _evaluated(validator, instance, schema, _names)
    return _refuse(
        any(name not in evaluated and not _is_valid(validator, instance[name], rule) for name in instance)
    )


def _unevaluated_items(validator: Any, rule: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if not isinstance(instance, list):
        return _refuse(False)
    evaluated = _evaluated(validator, instance, schema, _indexes)
    return _refuse(any(at not in evaluated for at in range(len(instance))))


Own = Callable[[Any, Any, Any], set[Any]]
"""Returns what the keywords beside each other in one schema evaluate."""


def _evaluated(validator: Any, instance: Any, schema: Any, own: Own) -> set[Any]:
    """Return the names or indexes that `schema` evaluates (2020-12 core, sections 11.2 and 11.3)."""
    if not isinstance(schema, Mapping):
        return set()
    current_budget().step()
    found = own(validator, instance, schema)
    for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        if keyword in schema:
            resolved = _resolved(validator, keyword, schema[keyword])
            inner = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            found |= _evaluated(inner, instance, resolved.contents, own)
    for name, subschema in schema.get("dependentSchemas", {}).items():
        if isinstance(instance, dict) and name in instance:
            found |= _evaluated(validator, instance, subschema, own)
    for keyword in ("allOf", "oneOf", "anyOf"):
        for subschema in schema.get(keyword, ()):
            if _is_valid(validator, instance, subschema):
                found |= _evaluated(validator, instance, subschema, own)
    if "if" in schema:
        holds = _is_valid(validator, instance, schema["if"])
        if holds:
            found |= _evaluated(validator, instance, schema["if"], own)
        found |= _evaluated(validator, instance, schema.get("then" if holds else "else"), own)
    return found


def _resolved(validator: Any, keyword: str, reference: str) -> Any:
    if keyword == "$recursiveRef":
        from referencing.jsonschema import lookup_recursive_ref  # of one dialect

        return lookup_recursive_ref(validator._resolver)
    return validator._resolver.lookup(reference)


def _names(validator: Any, instance: Any, schema: Any) -> set[Any]:
    found = set(instance) & set(schema.get("properties", {}))
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            rule = schema[keyword]
            found |= {name for name in instance if _is_valid(validator, instance[name], rule)}
    patterns = schema.get("patternProperties", {})
    return found | {name for name in instance if any(_matches(pattern, name) for pattern in patterns)}


def _indexes(validator: Any, instance: Any, schema: Any) -> set[Any]:
    items = schema.get("items")
    if isinstance(items, list):  # before 2020-12
        found = set(range(len(instance) if "additionalItems" in schema else len(items)))
    elif "items" in schema:
        return set(range(len(instance)))
    else:
        found = set(range(len(schema.get("prefixItems", ()))))
    for keyword in ("contains", "unevaluatedItems"):
        if keyword in schema:
            rule = schema[keyword]
            found |= {at for at, item in enumerate(instance) if _is_valid(validator, item, rule)}
    return found


_KEYWORDS: Final[Mapping[str, Keyword]] = {
    "const": _const,
    "uniqueItems": _unique_items,
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "anyOf": _at_least_one,
    "oneOf": _exactly_one,
    "not": _not,
    "if": _if,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
}
