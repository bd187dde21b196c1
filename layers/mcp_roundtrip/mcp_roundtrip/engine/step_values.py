"""Step results as JSON for the journal, and as values of the step's return annotation.

`round_trip` returns both, and `revive` the value that was recorded. Values of the types that JSON has are
read and written here, without pydantic, whose import takes half of a cold start.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import lru_cache
from inspect import Signature, isclass
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin
from weakref import WeakKeyDictionary

import msgspec
from msgspec.json import Decoder

from mcp_roundtrip.arguments.plain_json_types import is_json_type, json_text
from mcp_roundtrip.arguments.signature import resolve_type_hints, unwrap_function
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.strict_json import compact_json

if TYPE_CHECKING:
    from mcp_roundtrip.engine.typed_step_values import StepType

NO_ANNOTATION: Final = Signature.empty
UNRESOLVED: Final = "an annotation with a name that exists for type checkers only"
_WITHOUT_TYPE: Final = {
    NO_ANNOTATION: (
        "its function has no return annotation",
        "write a `def` with a return type (in a decorator: functools.wraps), or with `-> Any` for JSON data",
    ),
    UNRESOLVED: (
        "the return annotation does not exist at run time",
        "import its types outside `if TYPE_CHECKING:`, or return JSON data",
    ),
}
"""Why the type of a result is not known, and what to do. With `-> Any`, the result is JSON data."""
_EXACT_IN_JSON = frozenset({bool, int, str})
_PRIMITIVE = _EXACT_IN_JSON | {type(None)}


def round_trip(value: Any, annotation: Any) -> tuple[Any, Any]:
    """Return `value` as JSON data by `annotation`, if it has one, and what `revive` returns for that.

    Raises UsageError, which quotes no value, for a value that JSON cannot hold or that does not fit.
    """
    kind, is_untyped = type(value), _is_untyped(annotation)
    is_long = kind is int and value.bit_length() > 64  # JSON cannot hold more than 4,300 digits
    if kind in _PRIMITIVE and (is_untyped or kind is annotation) and not is_long:
        return value, value
    # A text of `Decimal | str` may be read back as a Decimal, so the whole type counts.
    is_json = is_untyped or is_json_type(annotation)
    if is_json and (text := json_text(value, Any if is_untyped else annotation)) is not None:
        return msgspec.json.decode(text), msgspec.json.decode(text)
    if is_untyped:
        data = _typed(annotation).untyped_to_data(value, _WITHOUT_TYPE.get(annotation))
        return data, revive(data, annotation)
    return _typed(annotation).round_trip(value)


def revive(data: Any, annotation: Any) -> Any:
    """Return the value that `round_trip` recorded; without an annotation, a copy of the data.

    Raises ValueError, which quotes no value, for data that the annotation does not read or writes otherwise.
    """
    if type(data) is annotation and annotation in _EXACT_IN_JSON:
        return data
    if _is_untyped(annotation):  # a copy: the tool may change it, the journal must not change
        return json.loads(compact_json(data)) if isinstance(data, (dict, list)) else data
    if is_json_type(annotation) and (decoder := _decoder(annotation)) is not None:
        with suppress(ValueError):
            return decoder.decode(msgspec.json.encode(data))
    return _typed(annotation).revive(data)


def check_annotation(annotation: Any) -> None:
    """Raise UsageError for an annotation that pydantic cannot use."""
    if not (_is_untyped(annotation) or is_json_type(annotation)):
        _typed(annotation).check()


@lru_cache(maxsize=256)
def _decoder(annotation: Any) -> Decoder[Any] | None:
    try:
        return Decoder(annotation)
    except TypeError:  # a union of two types of lists, or of dicts
        return None


def _typed(annotation: Any) -> StepType:
    from mcp_roundtrip.engine.typed_step_values import StepType  # imports pydantic

    return StepType(annotation)


def return_annotation(function: Callable[..., Any]) -> Any:
    """Return the type of the function's result, once awaited, or NO_ANNOTATION or UNRESOLVED."""
    target = unwrap_function(function)
    target = getattr(target, "__func__", target)  # a bound method is a new object each time
    try:
        return _annotations[target]
    except (KeyError, TypeError):  # TypeError: no weak references, or no hash
        found = _resolve(target)
    if found is not target:  # a class is its own result type: it would keep itself
        with suppress(TypeError):
            _annotations[target] = found
    return found


# Weak references, so that a closure and the values of its call are freed after the call.
_annotations: WeakKeyDictionary[Callable[..., Any], Any] = WeakKeyDictionary()


def _resolve(function: Callable[..., Any]) -> Any:
    if isclass(function) or isclass(get_origin(function)):
        return function
    try:
        found = resolve_type_hints(function).get("return", NO_ANNOTATION)
    except DefinitionError:  # a library's function may return JSON data even so
        return UNRESOLVED
    return get_args(found)[-1] if get_origin(found) in (Awaitable, Coroutine) else found


def _is_untyped(annotation: Any) -> bool:
    return any(annotation is each for each in (NO_ANNOTATION, UNRESOLVED, Any, None, object))
