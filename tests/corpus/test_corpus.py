import pytest

from corpus.golden import compare, describe, load
from corpus.recording import all_cases, record

REMEDY = (
    "If this change was asked for, run `make corpus`, and say in the commit why. Otherwise it is a defect of "
    "the change."
)


def test_each_case_behaves_as_recorded() -> None:
    recorded = load()
    cases = [case for case in all_cases() if case.name in recorded]
    compared = {case.name: compare(recorded[case.name], record(case)) for case in cases}
    if any(compared.values()):
        pytest.fail(f"{describe(compared)}\n{REMEDY}", pytrace=False)


def test_each_case_is_recorded() -> None:
    assert {case.name for case in all_cases()} == load().keys(), REMEDY
