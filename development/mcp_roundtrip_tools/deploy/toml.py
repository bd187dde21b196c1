"""Write TOML. The standard library only reads it (tomllib)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dumps(document: Mapping[str, Any]) -> str:
    """Return TOML. A nested mapping is a table; other values are strings, numbers, booleans and lists."""
    return "\n".join(_table((), document)).strip() + "\n"


def _table(path: tuple[str, ...], members: Mapping[str, Any]) -> Iterator[str]:
    own = {name: value for name, value in members.items() if not isinstance(value, Mapping)}
    if path and own:
        yield f"\n[{'.'.join(map(_key, path))}]"
    for name, value in own.items():
        yield f"{_key(name)} = {_value(value)}"
    for name, value in members.items():
        if isinstance(value, Mapping):
            yield from _table((*path, name), value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: Any) -> str:
    # JSON's strings, numbers, booleans and arrays are also TOML's. DEL must be escaped in TOML only.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
