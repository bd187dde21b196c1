"""The benchmarks that need no other MCP server run against the current code."""

import sysconfig
from pathlib import Path

import pytest

import bearer_tokens
import cold_chain
import cold_tables
import earlier_revision
import forwarding
import measure
import revisions
import run
import task_figures
from support import skips

pytest_plugins = ["support.ministack"]


@pytest.fixture(scope="module")
def installed_packages(tmp_path_factory):
    """Run cold functions with the packages of this environment, because installing them takes 20 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(revisions, "installed", lambda requirements: Path(sysconfig.get_path("purelib")))
        patch.setattr(cold_chain, "REVISION", "0" * 40)  # not in git
        now = revisions.deploy_now(tmp_path_factory.mktemp("now"))
        patch.setattr(revisions, "deploy_now", lambda folder: now)  # once for all tests
        yield


@pytest.mark.parametrize(
    "command",
    [
        ("replay.py", "1"),
        ("warm_calls.py", "1"),
        ("lists_and_notifications.py", "3", "2"),
        ("task_dynamodb_calls.py",),
        ("task_resume.py", "1", "2"),
    ],
    ids=lambda c: c[0],
)
def test_a_benchmark_runs(command, ministack):
    assert measure.run_script(*command, variables=task_figures.create_table(ministack))


def test_a_question_is_measured_by_each_channel_from_the_call_to_the_result():
    found = measure.run_script("questions.py", "3")
    assert {name: found[name]["requests"] for name in run.QUESTIONS} == {
        "client": 2,
        "app": 2,
        "app_parked": 2,
        "page": 5,
    }
    counted = [target for target in run.question_targets(found) if "DynamoDB" in target.title]
    assert [target.title for target in counted if target.value > target.limit] == []
    assert all(title in run.question_table(found) for title in run.QUESTIONS.values())


def test_this_revision_can_be_compared_with_itself(installed_packages):
    try:
        found = earlier_revision.compare_with("HEAD", 1, 1, 1)
    except revisions.RevisionUnavailable as reason:
        skips.skip(skips.HISTORY, str(reason))
    assert all(min(each.before, each.now, each.ratio) > 0 for each in found.values())


def test_a_cold_call_is_measured_by_stage_from_the_front_door_to_a_question(installed_packages):
    found = cold_chain.measure_cold_calls(1, "whole chain, 1769 MB")
    [row] = found.revisions
    [sample] = row.samples["now"]
    assert list(sample.stages) == [
        "front_door init",
        "front_door until Invoke",
        "tool init",
        "tool until its question",
        "front_door until its response",
    ]
    assert min(*sample.stages.values(), sample.cpu_ms) > 0
    assert cold_tables.cold_targets(found) == []  # there is no revision to compare with
    assert len(cold_tables.cold_tables(found)) == 2


def test_the_import_of_the_package_is_compared_only_with_another_revision(installed_packages):
    found = cold_chain.measure_cold_calls(1, "import of mcp_roundtrip")
    assert found.own_import.total_ms("now") > [0]
    assert cold_tables.cold_targets(found) == []
    [own_import] = cold_tables.cold_tables(found)
    assert "importtime" in own_import


def test_a_call_through_the_front_door_is_compared_with_a_direct_call():
    found = forwarding.measure_forwarding(1, 1, 20)  # a median: one call can be delayed by other processes
    assert found[forwarding.FRONT_DOOR].warm_ms > found[forwarding.TOOL].warm_ms > 0
    [target] = forwarding.forwarding_targets(found)
    assert (target.value, target.limit) == (found[forwarding.FRONT_DOOR].warm_ms, 3)


def test_verifying_a_token_is_compared_with_pyjwt():
    found = bearer_tokens.measure_verification(3)
    assert found.keys() == bearer_tokens.PRIVATE_KEYS.keys()
    assert {target.limit for target in bearer_tokens.verification_targets(found)} == {3}
