"""The benchmarks that need no other MCP server run against the current code."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import boto3
import pytest

import bearer_tokens
import cold_chain
import cold_tables
import cpu_limits
import earlier_revision
import forwarding
import measure
import revisions
import run
from support import skips
from support.dynamodb_clients import new_table

pytest_plugins = ["support.ministack"]


@pytest.fixture
def installed_packages(monkeypatch):
    """Run cold functions with the packages of this environment, because installing them takes 20 s."""
    monkeypatch.setattr(revisions, "installed", lambda requirements: Path(sysconfig.get_path("purelib")))
    monkeypatch.setattr(cold_chain, "REVISION", "0" * 40)  # not in git


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
    account = {"aws_access_key_id": "bench", "aws_secret_access_key": "bench"}
    region = measure.ENVIRONMENT["AWS_REGION"]
    dynamodb = boto3.client("dynamodb", region_name=region, endpoint_url=ministack, **account)
    variables = {
        **{name.upper(): value for name, value in account.items()},
        "AWS_DEFAULT_REGION": region,
        "AWS_ENDPOINT_URL_DYNAMODB": ministack,
        "MCP_TASK_TABLE": new_table(dynamodb),
    }
    dynamodb.close()
    assert measure.run_script(*command, variables=variables)


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


def test_an_unknown_revision_is_not_compared():
    with pytest.raises(revisions.RevisionUnavailable):
        earlier_revision.compare_with("0" * 40, 1, 1, 1)


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


def run_python(interpreter, code):
    return subprocess.run(
        [interpreter, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_function_gets_the_cpu_time_of_its_memory(tmp_path):
    with cpu_limits.cpu_limits(tmp_path) as limits:
        if not limits.has_quotas:
            skips.skip(skips.CGROUPS, limits.title)
        group = run_python(limits.interpreter("tool", 512), "print(open('/proc/self/cgroup').read())")
        assert "-tool" in group
        [quota] = [
            *Path("/sys/fs/cgroup").glob(f"**/*{os.getpid()}-tool/cpu.cfs_quota_us"),
            *Path("/sys/fs/cgroup").glob(f"**/*{os.getpid()}-tool/cpu.max"),
        ]
        assert quota.read_text().split()[0] == str(20_000 * 512 // 1769)
    assert not quota.exists()


def test_without_quotas_a_function_runs_on_one_cpu_and_smaller_ones_are_not_measured(tmp_path, monkeypatch):
    if shutil.which("taskset") is None:
        skips.skip(skips.LINUX, "taskset is not installed")
    monkeypatch.setattr(cpu_limits, "_CGROUPS", ())
    with cpu_limits.cpu_limits(tmp_path) as limits:
        assert "no quotas" in limits.title
        assert [limits.supports(memory_mb) for memory_mb in (512, 1769)] == [False, True]
        count = run_python(limits.interpreter("tool", 1769), "import os; print(len(os.sched_getaffinity(0)))")
        assert count == "1"


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
