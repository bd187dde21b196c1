"""Functions that read members of an event.

A caller with `lambda:InvokeFunction` may send any event, so a member of another type counts as absent.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from typing import Any, Final

Event = Mapping[str, Any]


def members(event: Event, name: str) -> Mapping[str, Any]:
    """Return a member that is an object; empty if there is none."""
    found = event.get(name)
    return found if isinstance(found, dict) else {}


def text(event: Event, name: str) -> str:
    """Return a member that is a string; empty if there is none."""
    found = event.get(name)
    return found if isinstance(found, str) else ""


def headers(event: Event) -> dict[str, str]:
    """Return `headers` by lower-case name."""
    return _join(members(event, "headers").items())


def multi_value_headers(event: Event) -> dict[str, str]:
    """Return `multiValueHeaders` by lower-case name, the values of one header joined."""
    lists = members(event, "multiValueHeaders").items()
    return _join((name, value) for name, values in lists if isinstance(values, list) for value in values)


def _join(pairs: Iterable[tuple[Any, Any]]) -> dict[str, str]:
    # A proxy may have read another one of several values. Joined (RFC 9110 §5.3), they equal no method, name
    # or version, and are no bearer token.
    found: dict[str, str] = {}  # without a list for each name: every warm call comes here
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
    """Return the body; None if `isBase64Encoded` is set and the body is not Base64."""
    content = event.get("body") or ""
    if not event.get("isBase64Encoded"):
        return content if isinstance(content, str) else ""
    try:
        return b64decode(content, validate=True)
    except (ValueError, TypeError):
        return None


def query(event: Event) -> dict[str, str]:
    """Return the parameters of the query that occur once. A load balancer leaves them encoded."""
    lists = members(event, "multiValueQueryStringParameters").items()
    pairs = [(name, values[0]) for name, values in lists if isinstance(values, list) and len(values) == 1]
    pairs = pairs if lists else list(members(event, "queryStringParameters").items())
    return {name: value for name, value in pairs if isinstance(name, str) and isinstance(value, str)}


_QUERIES: Final = frozenset({"rawQueryString", "queryStringParameters", "multiValueQueryStringParameters"})


def remove_query(event: dict[str, Any]) -> None:
    for name in _QUERIES & event.keys():
        event[name] = type(event[name])()


def without_stage(path: str, stage: str) -> str:
    """Remove the stage from a path. Every stage but `$default` is the first segment."""
    if not stage or not f"{path}/".startswith(f"/{stage}/"):
        return path
    return path[len(stage) + 1 :] or "/"
