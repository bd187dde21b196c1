"""One pydantic TypeAdapter per type, and its refusals in words that quote no value."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import to_jsonable_python

UNUSABLE = (PydanticUserError, PydanticUndefinedAnnotation)
"""What pydantic raises for a type it cannot build, or cannot describe in JSON Schema."""

MAX_NAME = 128
"""How much of a member's name a message shows: the name may be the client's."""

MAX_PROBLEMS = 20
"""How many problems a message lists; a list of a million wrong items must not become a book."""

# pydantic's own texts for these quote the input.
_WITHOUT_INPUT = {
    "union_tag_invalid": "Input does not say which of {expected_tags} it is ({discriminator})",
    "uuid_parsing": "Input should be a valid UUID",
    "zoneinfo_str": "Input should be the name of a time zone",
    "timezone_offset": "Input has another timezone offset than {tz_expected} seconds",
}


# bytes that are no UTF-8 survive, where pydantic lets anybody but the type itself decide it.
_EXACT = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")


def adapter(annotation: Any, *, exact: bool = False) -> TypeAdapter[Any]:
    """A TypeAdapter for `annotation`, cached; an `exact` one writes bytes as Base64.

    Raises one of `UNUSABLE` for a type pydantic does not know.
    """
    try:
        hash(annotation)
    except TypeError:  # metadata may have no hash, as in Annotated[int, {...}]
        return _build(annotation, exact)
    # Literal["a", "b"] equals Literal["b", "a"], and their schemas differ.
    return _cached(annotation, exact, "" if isinstance(annotation, type) else repr(annotation))


def _build(annotation: Any, exact: bool, spelling: str = "") -> TypeAdapter[Any]:
    if not exact:
        return TypeAdapter(annotation)
    try:
        return TypeAdapter(annotation, config=_EXACT)
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        return TypeAdapter(annotation)


_cached = lru_cache(maxsize=512)(_build)


def as_json(value: Any) -> tuple[Any, str]:
    """`value` as JSON data and as text, whatever its type.

    Raises ValueError (PydanticSerializationError is one) for what JSON cannot hold.
    """
    data = to_jsonable_python(value)
    return data, text_of(data, lambda: adapter(Any).dump_python(value))


def text_of(data: Any, unwritten: Callable[[], Any]) -> str:
    """`data` on one line; `unwritten` gives the Python values that pydantic wrote as `data`.

    Raises ValueError for NaN and Infinity, also where pydantic wrote null for them, and for half of a
    surrogate pair, also where it wrote U+FFFD for that: in the names of members.
    """
    text = _JSON.encode(data)
    text.encode()
    if "null" in text or "\ufffd" in text:
        _EXACT_JSON.encode(unwritten()).encode()
    return text


# Read by the model: characters outside ASCII stay as they are. The envelope around it escapes them.
_JSON = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)

# Encodes nothing of use, but finds NaN and the halves in anything at the speed of C.
_EXACT_JSON = json.JSONEncoder(
    ensure_ascii=False,
    allow_nan=False,
    skipkeys=True,
    default=lambda value: list(value) if isinstance(value, (set, frozenset)) else None,
)


def problems(error: ValidationError, root: str) -> str:
    """One line per problem: where (from `root` on), and what. The input's values are never quoted."""
    found = error.errors(include_url=False, include_input=False)
    lines = [f"{location(root, item['loc'])}: {_reason(item, root)}" for item in found[:MAX_PROBLEMS]]
    if len(found) > MAX_PROBLEMS:
        lines.append(f"and {len(found) - MAX_PROBLEMS} more")
    return "\n".join(lines)


def location(root: str, path: Sequence[str | int]) -> str:
    """`arguments`, `("sizes", 0, "vcpus")` -> `arguments.sizes[0].vcpus`."""
    steps = [f"[{step}]" if isinstance(step, int) else f".{step[:MAX_NAME]}" for step in path]
    return (root + "".join(steps)).removeprefix(".") or "answer"  # a form has no root


def _reason(item: Any, root: str) -> str:
    kind = item["type"]
    if kind == "extra_forbidden":
        return "unknown argument" if root == "arguments" and len(item["loc"]) == 1 else "unknown member"
    if kind in _WITHOUT_INPUT:
        return _WITHOUT_INPUT[kind].format_map(item.get("ctx", {}))
    if _raised_in(item.get("ctx", {}).get("error")) == "ipaddress":  # it quotes the input
        return "Input should be a valid IP address or network"
    return str(item["msg"]).removeprefix("Value error, ")


def _raised_in(error: object) -> str | None:
    """The name of the module that raised an exception; None for what is none."""
    trace = getattr(error, "__traceback__", None)
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_globals.get("__name__")
