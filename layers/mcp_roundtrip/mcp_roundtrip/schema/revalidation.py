"""A second validation of returned models and dataclasses, whose fields pydantic does not check.

A dataclass of the standard library was never validated, and a model may have been changed since. The
specification demands that a result conforms to its outputSchema. The validated copy is discarded: the result
is the author's own value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import InitVar, fields, is_dataclass
from functools import lru_cache
from typing import Any, Final, get_args

from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError
from pydantic_core.core_schema import ErrorType

_SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})

# Errors that an author's own validators can cause, for example one that accepts only instances of its class.
# They do not show that a value breaks its schema.
_SCHEMA_ERRORS: Final = {*get_args(ErrorType)} - {
    *("value_error", "assertion_error", "is_instance_of", "recursion_loop"),
    *("extra_forbidden", "unexpected_keyword_argument"),
}


def revalidate(types: TypeAdapter[Any], value: Any) -> None:
    """Raise pydantic's ValidationError for a `value` that breaks the schema of its type.

    `value` was validated and serialized before, so its types are right and it does not contain itself.
    """
    try:
        # Instances are dicts now, which a `strict` dataclass would refuse.
        types.validate_python(instances_to_dicts(value), strict=False, by_alias=False, by_name=True)
    except ValidationError as error:
        if all(
            each["type"] in _SCHEMA_ERRORS for each in error.errors(include_url=False, include_input=False)
        ):
            raise
    except Exception:  # an author's validator may raise anything
        return


def instances_to_dicts(value: Any) -> Any:
    """Replace models and dataclasses in `value` by dicts of their fields.

    Containers are copied, because an author's validator may change its argument.
    """
    kind: Any = type(value)
    unpack = _by_type(kind)
    return value if unpack is None else unpack(value)


@lru_cache(maxsize=512)  # issubclass is slow for models, and a list has many of one type
def _by_type(kind: type[Any]) -> Callable[[Any], Any] | None:
    if issubclass(kind, RootModel):
        return lambda model: instances_to_dicts(model.root)
    if issubclass(kind, BaseModel):
        return _model
    if issubclass(kind, dict):
        return _dict
    if issubclass(kind, (list, tuple, set, frozenset, deque)):
        return _list
    return _dataclass(kind) if is_dataclass(kind) else None


def _model(model: BaseModel) -> dict[str, Any]:
    members, fields = model.__dict__, type(model).__pydantic_fields__
    if not members.keys() <= fields.keys():  # cached properties
        members = {name: member for name, member in members.items() if name in fields}
    return _dict({**members, **model.__pydantic_extra__} if model.__pydantic_extra__ else members)


def _dict(members: Mapping[str, Any]) -> dict[str, Any]:
    if _SCALARS.issuperset(map(type, members.values())):
        return dict(members)
    return {name: instances_to_dicts(member) for name, member in members.items()}


def _list(items: Iterable[Any]) -> list[Any]:  # a list for sets, too: dicts have no hash
    return list(items) if _SCALARS.issuperset(map(type, items)) else list(map(instances_to_dicts, items))


def _dataclass(kind: type[Any]) -> Callable[[Any], Any] | None:
    if any(_is_init_var(each.type) for each in kind.__dataclass_fields__.values()):
        return None  # an instance does not store the values of its InitVars
    names = [field.name for field in fields(kind) if field.init]
    return lambda value: _dict({name: getattr(value, name) for name in names})


def _is_init_var(annotation: Any) -> bool:
    if isinstance(annotation, str):  # from __future__ import annotations
        return "InitVar[" in annotation
    return annotation is InitVar or isinstance(annotation, InitVar)
