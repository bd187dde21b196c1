"""The seeded faults fit today's code and tests. `make faults` seeds them."""

import re
from functools import cache
from pathlib import Path

from faults.seeded import LAYER, ROOT, find_faults

FAULTS = list(find_faults())

LEAST = 60


def test_each_fault_fits_todays_code() -> None:
    assert [fault.name for fault in FAULTS if not fault.apply(ROOT, "--check")] == []


def test_the_faults_are_spread_over_all_packages_of_the_layer_and_change_nothing_else() -> None:
    header = re.compile(r"^\+\+\+ b/(.*)$", re.MULTILINE)
    changed = {fault.name: header.findall(fault.path.read_text("utf-8")) for fault in FAULTS}
    assert [name for name, paths in changed.items() if not paths] == []
    packages = {path.parent.relative_to(ROOT).as_posix() for path in (ROOT / LAYER).rglob("__init__.py")}
    assert {path.rpartition("/")[0] for paths in changed.values() for path in paths} == packages
    assert len(FAULTS) >= LEAST


def test_each_fault_is_described_by_what_a_user_or_an_operator_sees() -> None:
    """The description outlasts the code, so it names no module and no function."""
    code = re.compile(r"\.py\b|\w_\w|\(\)")
    assert [each.name for each in FAULTS if not re.fullmatch(r"[A-Z`].*\.", each.description)] == []
    assert [each.name for each in FAULTS if code.search(each.description)] == []


def test_each_fault_names_at_most_three_tests_that_exist() -> None:
    assert [each.name for each in FAULTS if not 1 <= len(each.tests) <= 3] == []
    assert [(each.name, test) for each in FAULTS for test in each.tests if not exists(test)] == []


def exists(test: str) -> bool:
    path, _, function = test.partition("::")
    return function in functions(ROOT / path)


@cache
def functions(module: Path) -> frozenset[str]:
    text = module.read_text("utf-8") if module.is_file() else ""
    return frozenset(re.findall(r"^(?:async )?def (test_\w+)\(", text, re.MULTILINE))
