import pytest

from conformance.verdict import Row, judge


def judged(*statuses: str, at_least: int = 0, **excused: str) -> Row:
    """Judge checks with these statuses, whose ids are the letters from a on."""
    checks = [
        {"id": check_id, "status": status, "description": "what is checked"}
        for check_id, status in zip("abcd", statuses, strict=False)
    ]
    return judge("scenario", checks, excused=excused, at_least=at_least)


def test_what_passed_was_skipped_or_is_excused_is_counted_and_no_problem() -> None:
    row = judged("SUCCESS", "SUCCESS", "SKIPPED", "INFO", at_least=2)
    assert row == Row("scenario", passed=2, skipped=1)
    assert judged("FAILURE", "SUCCESS", a="reason") == Row("scenario", passed=1, excused=1)


@pytest.mark.parametrize("status", ["FAILURE", "WARNING", "a status of a later suite"])
def test_a_failed_check_and_a_warning_are_problems(status: str) -> None:
    row = judged("SUCCESS", status)
    assert (row.passed, row.failed + row.warnings, len(row.problems)) == (1, 1, 1)


def test_no_results_fewer_passes_than_expected_and_an_unneeded_excuse_are_problems() -> None:
    assert judged().problems
    assert judged("SUCCESS", "SKIPPED", at_least=2).problems
    assert judged("SUCCESS", a="reason").problems
    assert judged("SUCCESS", b="reason").problems
