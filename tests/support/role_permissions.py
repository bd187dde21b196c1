"""The permissions of a role, compared with the AWS calls of its function."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Grant:
    """Permission for one action on one resource, under these values of condition keys."""

    action: str
    resource: str
    conditions: frozenset[tuple[str, str]] = frozenset()

    def covers(self, call: Call) -> bool:
        return (
            self.action == call.action
            and _matches(self.resource, call.resource)
            and self.conditions <= call.context
        )


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one action on one resource, with the values of its condition keys."""

    action: str
    resource: str
    context: frozenset[tuple[str, str]] = frozenset()


def grants(statements: Iterable[Mapping[str, Any]]) -> set[Grant]:
    """Split statements into grants. Raises for statements in a form that the template does not use."""
    found = set()
    for statement in statements:
        assert statement["Effect"] == "Allow"
        assert statement.keys() <= {"Sid", "Principal", "Effect", "Action", "Resource", "Condition"}
        condition = statement.get("Condition", {})
        assert condition.keys() <= {"StringEquals"}
        conditions = frozenset(condition.get("StringEquals", {}).items())
        for action in _listed(statement["Action"]):
            found |= {Grant(action, resource, conditions) for resource in _listed(statement["Resource"])}
    return found


def findings(
    granted: Iterable[Grant],
    calls: Iterable[Call],
    for_services: Mapping[tuple[str, str], str],
    wildcards: Mapping[str, str],
) -> list[str]:
    """Return the faults of a role.

    `for_services` are actions on resources that AWS services perform with it, `wildcards` are resources that
    may have a wildcard; both with the reason.
    """
    granted, calls = set(granted), set(calls)
    return sorted(
        [
            *(f"not allowed: {call}" for call in calls if not any(each.covers(call) for each in granted)),
            *(f"never used: {each}" for each in granted if not _is_used(each, calls, for_services)),
            *(f"any action: {each}" for each in granted if "*" in each.action or "?" in each.action),
            *(
                f"any resource: {each}"
                for each in granted
                if ("*" in each.resource or "?" in each.resource) and each.resource not in wildcards
            ),
        ]
    )


def _is_used(grant: Grant, calls: Iterable[Call], for_services: Mapping[tuple[str, str], str]) -> bool:
    return (grant.action, grant.resource) in for_services or any(grant.covers(call) for call in calls)


def _matches(pattern: str, resource: str) -> bool:
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), resource) is not None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
