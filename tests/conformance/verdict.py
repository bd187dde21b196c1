"""What the checks of a scenario come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """A scenario's counts, and whatever is wrong with them."""

    scenario: str
    passed: int
    failed: int
    warnings: int
    skipped: int
    excused: int
    problems: tuple[str, ...]


def judge(
    scenario: str,
    checks: Sequence[Mapping[str, Any]],
    *,
    excused: Mapping[str, str],
    at_least: int,
) -> Row:
    """Judge a scenario's checks.

    `excused` maps the id of a check that fails, or warns, for a good reason to that reason; one that does
    neither any more is a problem, too. `at_least` is how many checks passed before.
    """
    bad = [check for check in checks if check["status"] not in ("SUCCESS", "SKIPPED", "INFO")]
    problems = [_described(check) for check in bad if check["id"] not in excused]
    unused = excused.keys() - {check["id"] for check in bad}
    problems += [f"{check_id} no longer needs its excuse" for check_id in sorted(unused)]
    counted = Counter(check["status"] for check in checks if check["id"] not in excused)
    if not checks:
        problems = ["no results"]
    elif counted["SUCCESS"] < at_least:
        problems.append(f"{counted['SUCCESS']} checks passed, {at_least} did before")
    return Row(
        scenario,
        passed=counted["SUCCESS"],
        failed=len(bad) - len(checks_with(bad, excused)) - counted["WARNING"],
        warnings=counted["WARNING"],
        skipped=counted["SKIPPED"],
        excused=len(checks_with(bad, excused)),
        problems=tuple(problems),
    )


def checks_with(checks: Sequence[Mapping[str, Any]], ids: Mapping[str, str]) -> list[Mapping[str, Any]]:
    return [check for check in checks if check["id"] in ids]


def _described(check: Mapping[str, Any]) -> str:
    message = check.get("errorMessage") or check.get("description") or ""
    return f"{check['status']} {check['id']}: {message}"
