import pytest

from conformance.inventory import EXPECTED, EXTENSION, LEGACY_REVISION, NOT_RUN, TARGETS, unaccounted
from conformance.suite import listed


def test_the_list_of_the_suite_is_parsed() -> None:
    text = "Server scenarios:\n  - ping [2025-06-18,2025-11-25]\n  - tasks-lifecycle [extension]\n"
    assert listed(text) == {"ping": ["2025-06-18", "2025-11-25"], "tasks-lifecycle": ["extension"]}


def test_a_scenario_is_run_or_excluded_with_a_reason() -> None:
    assert len({target.title for target in TARGETS}) == len(TARGETS)
    assert len(EXPECTED["conformance_server"]) == 53
    assert not EXPECTED["conformance_server"].keys() & NOT_RUN.get(EXTENSION, {}).keys()
    assert not EXPECTED["conformance_server_legacy"].keys() & NOT_RUN[LEGACY_REVISION].keys()


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
