"""What the adapters share: what tells one source's events from another's, and how their members are read.

The services send events of one form; whoever invokes the function directly may send anything.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]
Mark = str | type | Callable[[Any], bool]
"""What a member has to be: this text, of this type, or what the function says. A null is like no member."""


@dataclass(frozen=True, slots=True)
class Source:
    """How events of a source look: members by their dotted paths, those they have and those they never do."""

    name: str
    has: Mapping[str, Mark]
    lacks: Mapping[str, Mark] = field(default_factory=dict)

    def sends(self, event: Event) -> bool:
        """Whether the event is of this source."""
        return not any(self.missing(event)) and not any(self.unexpected(event))

    def missing(self, event: Event) -> Iterable[str]:
        """The paths in `has` that the event does not fit."""
        return (path for path, mark in self.has.items() if not _fits(at(event, path), mark))

    def unexpected(self, event: Event) -> Iterable[str]:
        """The paths in `lacks` that the event has."""
        return (path for path, mark in self.lacks.items() if _fits(at(event, path), mark))


def _fits(value: Any, mark: Mark) -> bool:
    if value is None:
        return False
    if isinstance(mark, str):
        return bool(value == mark)
    return isinstance(value, mark) if isinstance(mark, type) else mark(value)


def at(event: Event, path: str) -> Any:
    """The member at a dotted path; None where there is none."""
    if "." not in path:
        return event.get(path)
    found: Any = event
    for name in path.split("."):
        if not isinstance(found, dict):
            return None
        found = found.get(name)
    return found


def members(event: Event, name: str) -> Mapping[str, Any]:
    """The object of this name; empty where there is none."""
    found = event.get(name)
    return found if isinstance(found, dict) else {}


def text(event: Event, name: str) -> str:
    """The text of this name; empty where there is none."""
    found = event.get(name)
    return found if isinstance(found, str) else ""


def headers(event: Event) -> dict[str, str]:
    """The headers of an event that has one value for each, by lower-case name."""
    return _joined(members(event, "headers").items())


def multi_value_headers(event: Event) -> dict[str, str]:
    """The headers of an event that has a list of values for each, by lower-case name."""
    lists = members(event, "multiValueHeaders").items()
    return _joined((name, value) for name, values in lists if isinstance(values, list) for value in values)


def _joined(pairs: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    # To choose one of several values would let others on the way choose another: joined as RFC 9110 (5.3)
    # has it, they equal no method, name or version, and are no bearer token.
    found: dict[str, str] = {}
    repeated: dict[str, list[str]] = {}
    for name, value in pairs:
        if isinstance(name, str) and isinstance(value, str):
            key = name.lower()
            if key in found:
                repeated.setdefault(key, [found[key]]).append(value)
            else:
                found[key] = value
    return found | {key: ", ".join(values) for key, values in repeated.items()} if repeated else found


def body(event: Event) -> str | bytes | None:
    """The body; None when it is said to be Base64 and is not."""
    content = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return content if isinstance(content, str) else ""
    try:
        return b64decode(content, validate=True)
    except (ValueError, TypeError):
        return None


def without_stage(path: str, stage: str) -> str:
    """The path as its client's URL has it below the stage; every stage but `$default` is its first part."""
    if not stage or not f"{path}/".startswith(f"/{stage}/"):
        return path
    return path[len(stage) + 1 :] or "/"
