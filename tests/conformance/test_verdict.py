"""A run of the conformance suite must not pass by accident."""

from typing import Any

import pytest

from conformance.verdict import Row, judge


def check(status: str, check_id: str = "a") -> dict[str, Any]:
    return {"id": check_id, "status": status, "description": "what is checked"}


def judged(*checks: dict[str, Any], at_least: int = 0, **excused: str) -> Row:
    return judge("scenario", checks, excused=excused, at_least=at_least)


def test_passed_and_skipped_checks_are_no_problem() -> None:
    row = judged(check("SUCCESS"), check("SUCCESS"), check("SKIPPED"), check("INFO"), at_least=2)
    assert row == Row("scenario", passed=2, skipped=1)


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "a status of a later suite"])
def test_a_failed_check_and_a_warning_are_problems(status: str) -> None:
    row = judged(check("SUCCESS", "b"), check(status))
    assert (row.passed, row.failed + row.warnings, len(row.problems)) == (1, 1, 1)


def test_a_scenario_without_results_is_a_problem() -> None:
    assert judged().problems


def test_fewer_passes_than_expected_are_a_problem() -> None:
    assert judged(check("SUCCESS"), check("SKIPPED", "b"), at_least=2).problems


def test_an_excused_check_is_counted_separately() -> None:
    row = judged(check("FAILURE"), check("SUCCESS", "b"), a="reason")
    assert row == Row("scenario", passed=1, excused=1)


@pytest.mark.parametrize("checks", [[check("SUCCESS")], [check("SUCCESS", "b")]])
def test_an_unneeded_excuse_is_a_problem(checks: list[dict[str, Any]]) -> None:
    assert judged(*checks, a="reason").problems
