import json
from pathlib import Path
from xml.etree import ElementTree

from conformance.inventory import EXPECTED, NOT_RUN, ROOT, TARGETS
from conformance.publication import badge, page, summary
from conformance.suite import NODE, SUITE
from support.documents import read_document

HERE = Path(__file__).parent
RESULTS = json.loads((HERE / "results.json").read_bytes())
BADGE = "docs/images/conformance.svg"
PAGE = "docs/reference/conformance.md"


def test_the_results_are_those_of_the_pinned_suite() -> None:
    assert (RESULTS["suite"], RESULTS["node"]) == (SUITE, NODE.partition("==")[2]), "run make conformance"


def test_the_results_have_every_server_and_scenario() -> None:
    published = {each["title"]: (each["revision"], [*each["scenarios"]]) for each in RESULTS["servers"]}
    expected = {target.title: (target.revision, [*target.scenarios]) for target in TARGETS}
    assert published == expected, "run make conformance"


def test_as_many_checks_passed_as_expected_and_none_failed() -> None:
    for target, each in zip(TARGETS, RESULTS["servers"], strict=True):
        for scenario, row in each["scenarios"].items():
            assert row["passed"] >= EXPECTED[target.record][scenario]
            assert row["failed"] == row["warnings"] == 0
        assert each["excuses"] == target.excused


def test_the_page_and_the_badge_show_the_results() -> None:
    assert read_document(PAGE) == page(RESULTS, NOT_RUN)
    assert (ROOT / BADGE).read_text("utf-8") == badge(RESULTS)


def test_the_readme_shows_the_badge_with_a_link_to_the_page() -> None:
    text = f"MCP conformance: {summary(RESULTS)}"
    title = ElementTree.fromstring((ROOT / BADGE).read_text("utf-8"))[0].text
    assert title == text
    assert f'[<img src="{BADGE}" alt="MCP conformance">]({PAGE})' in read_document("README.md")
