"""Every scenario of the suite is accounted for."""

import json
from pathlib import Path

import pytest

from conformance.inventory import (
    EXTENSION,
    LEGACY_REVISION,
    LEGACY_SCENARIOS,
    NOT_RUN,
    SCENARIOS,
    TARGETS,
    unaccounted,
)
from conformance.suite import listed

EXPECTED = json.loads(Path(__file__).with_name("expected.json").read_bytes())


def test_the_list_of_the_suite_is_parsed() -> None:
    text = "Server scenarios:\n  - ping [2025-06-18,2025-11-25]\n  - tasks-lifecycle [extension]\n"
    assert listed(text) == {"ping": ["2025-06-18", "2025-11-25"], "tasks-lifecycle": ["extension"]}


def test_a_scenario_is_run_once_or_excluded_with_a_reason() -> None:
    assert len(set(SCENARIOS)) == len(SCENARIOS) == 53
    assert not {*SCENARIOS} & NOT_RUN.get(EXTENSION, {}).keys()
    assert not {*LEGACY_SCENARIOS} & NOT_RUN[LEGACY_REVISION].keys()


@pytest.mark.parametrize(
    ("offered", "missing"),
    [
        ({"tools-list": ["2025-06-18", "2025-11-25", "2026-07-28"]}, []),
        ({"resources-subscribe": ["2025-06-18", "2025-11-25"]}, []),
        ({"ping": ["2025-11-25", "2026-07-28"]}, ["ping (2026-07-28)"]),
        ({"new": ["2025-11-25"], "newer": ["extension"]}, ["new (2025-11-25)", "newer (extension)"]),
        ({"old": ["2025-03-26"]}, []),
    ],
)
def test_an_unaccounted_scenario_is_detected(offered: dict[str, list[str]], missing: list[str]) -> None:
    assert unaccounted(offered) == missing


def test_every_scenario_of_every_server_has_a_figure() -> None:
    assert len({target.title for target in TARGETS}) == len(TARGETS)
    for target in TARGETS:
        assert EXPECTED[target.record].keys() == set(target.scenarios)
