"""Models and dataclasses that an author returns: pydantic takes an instance as it is.

A dataclass of the standard library was never validated, a model may have been changed since. So their
members are validated once more, and nothing comes of it but a refusal: what is written is the author's own.
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

# A validator of the author's may take nothing but what a client sends, the class itself, or no more than
# the fields of a base class. That says nothing about the schema, so with these there is no refusal.
_STATED: Final = {*get_args(ErrorType)} - {
    *("value_error", "assertion_error", "is_instance_of", "recursion_loop"),
    *("extra_forbidden", "unexpected_keyword_argument"),
}


def check(types: TypeAdapter[Any], value: Any) -> None:
    """Raise pydantic's ValidationError for a `value` that breaks what the schema of its type states.

    `value` has been validated and written: its types are right, and it does not hold itself.
    """
    try:
        # Every instance has become a dict, which no `strict` dataclass takes.
        types.validate_python(unpacked(value), strict=False, by_alias=False, by_name=True)
    except ValidationError as error:
        if all(each["type"] in _STATED for each in error.errors(include_url=False, include_input=False)):
            raise
    except Exception:  # an author's validator may raise whatever it likes
        return


def unpacked(value: Any) -> Any:
    """`value` with the members of its models and dataclasses in dicts, by the names of the fields.

    Containers are copies: a validator of the author's may change what it is given.
    """
    kind: Any = type(value)
    unpack = _by_type(kind)
    return value if unpack is None else unpack(value)


@lru_cache(maxsize=512)  # a thousand models are of one type, and asking what a model is takes long
def _by_type(kind: type[Any]) -> Callable[[Any], Any] | None:
    if issubclass(kind, RootModel):
        return lambda model: unpacked(model.root)
    if issubclass(kind, BaseModel):
        return _model
    if issubclass(kind, dict):
        return _dict
    if issubclass(kind, (list, tuple, set, frozenset, deque)):
        return _list
    return _dataclass(kind) if is_dataclass(kind) else None


def _model(model: BaseModel) -> dict[str, Any]:
    members, fields = model.__dict__, type(model).__pydantic_fields__
    if not members.keys() <= fields.keys():  # what a cached property keeps
        members = {name: member for name, member in members.items() if name in fields}
    return _dict({**members, **model.__pydantic_extra__} if model.__pydantic_extra__ else members)


def _dict(members: Mapping[str, Any]) -> dict[str, Any]:
    if _SCALARS.issuperset(map(type, members.values())):
        return dict(members)
    return {name: unpacked(member) for name, member in members.items()}


def _list(items: Iterable[Any]) -> list[Any]:  # also for a set: dicts have no hash
    return list(items) if _SCALARS.issuperset(map(type, items)) else list(map(unpacked, items))


def _dataclass(kind: type[Any]) -> Callable[[Any], Any] | None:
    if any(_is_init_var(each.type) for each in kind.__dataclass_fields__.values()):
        return None  # what it was made from is gone
    names = [field.name for field in fields(kind) if field.init]
    return lambda value: _dict({name: getattr(value, name) for name in names})


def _is_init_var(annotation: Any) -> bool:
    if isinstance(annotation, str):  # from __future__ import annotations
        return "InitVar[" in annotation
    return annotation is InitVar or isinstance(annotation, InitVar)
