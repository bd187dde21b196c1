"""The verdict on the checks of a scenario."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Check = Mapping[str, Any]

_HARMLESS: Final = ("SUCCESS", "SKIPPED", "INFO")


@dataclass(frozen=True, slots=True)
class Row:
    """The counts of a scenario, and its problems."""

    scenario: str
    passed: int = 0
    failed: int = 0
    warnings: int = 0
    skipped: int = 0
    excused: int = 0
    problems: tuple[str, ...] = ()


def judge(scenario: str, checks: Sequence[Check], *, excused: Mapping[str, str], at_least: int) -> Row:
    """Judge a scenario's checks.

    `excused` maps the id of a check that fails or warns to the reason why it may; once it does neither, that
    is a problem, too. `at_least` is how many checks have to pass.
    """
    if not checks:
        return Row(scenario, problems=("no results",))
    bad = [check for check in checks if check["status"] not in _HARMLESS]
    counted = [check for check in checks if check["id"] not in excused]
    unexcused = [check for check in counted if check in bad]
    statuses = Counter(check["status"] for check in counted)
    unneeded = sorted(excused.keys() - {check["id"] for check in bad})
    problems = [*map(_described, unexcused), *(f"{check} needs no excuse any more" for check in unneeded)]
    if statuses["SUCCESS"] < at_least:
        problems.append(f"{statuses['SUCCESS']} checks passed, expected are {at_least}")
    return Row(
        scenario,
        passed=statuses["SUCCESS"],
        failed=len(unexcused) - statuses["WARNING"],
        warnings=statuses["WARNING"],
        skipped=statuses["SKIPPED"],
        excused=len(bad) - len(unexcused),
        problems=tuple(problems),
    )


def _described(check: Check) -> str:
    message = check.get("errorMessage") or check.get("description") or ""
    return f"{check['status']} {check['id']}: {message}"
