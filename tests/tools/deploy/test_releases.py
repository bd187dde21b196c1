"""The releases that `make deploy` saves and `make rollback` chooses from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from mcp_roundtrip_tools.deploy import account as releases
from mcp_roundtrip_tools.deploy.account import MAX_RELEASES, Account, Release
from mcp_roundtrip_tools.deploy.environments import Refused

FIRST, SECOND = Release("one", {"AuthMode": "none"}), Release("two", {"AuthMode": "none"})


class Stacks:
    """CloudFormation with one stack, or with none."""

    def __init__(self, stack: dict[str, Any] | None, template: Any = "one") -> None:
        self.stack, self.template = stack, template

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        if self.stack is None:
            raise ClientError({"Error": {"Code": "ValidationError"}}, "DescribeStacks")
        return {"Stacks": [self.stack]}

    def get_template(self, StackName: str, TemplateStage: str) -> dict[str, Any]:
        assert TemplateStage == "Original"
        return {"TemplateBody": self.template}


def account(stack: dict[str, Any] | None, template: Any = "one") -> Account:
    return Account(lambda service: Stacks(stack, template))


PARAMETERS = [{"ParameterKey": "AuthMode", "ParameterValue": "none"}]


def test_what_runs_is_its_template_and_all_its_parameters() -> None:
    assert releases.running_release(account({"Parameters": PARAMETERS}), "s") == FIRST
    parsed = releases.running_release(account({"Parameters": PARAMETERS}, {"Resources": {}}), "s")
    assert parsed == Release('{"Resources": {}}', {"AuthMode": "none"})
    for before_the_first in (None, {"StackStatus": "REVIEW_IN_PROGRESS"}):
        assert releases.running_release(account(before_the_first), "s") is None


def test_the_newest_release_that_differs_from_the_running_one_is_previous(tmp_path: Path) -> None:
    releases.save_release(tmp_path, "default", FIRST)
    releases.save_release(tmp_path, "default", SECOND)
    assert releases.previous_release(tmp_path, "default", SECOND) == FIRST
    assert releases.previous_release(tmp_path, "default", None) == SECOND


def test_a_release_is_not_saved_twice_in_a_row_and_old_ones_are_deleted(tmp_path: Path) -> None:
    assert releases.save_release(tmp_path, "default", FIRST) == releases.save_release(
        tmp_path, "default", FIRST
    )
    for number in range(MAX_RELEASES + 3):
        newest = releases.save_release(tmp_path, "default", Release(str(number), {}))
    assert len(list(newest.parent.iterdir())) == MAX_RELEASES
    assert releases.read_release(newest) == Release(str(MAX_RELEASES + 2), {})


def test_without_an_earlier_release_of_the_environment_the_rollback_is_refused(tmp_path: Path) -> None:
    releases.save_release(tmp_path, "prod", FIRST)
    releases.save_release(tmp_path, "default", SECOND)
    with pytest.raises(Refused, match="No earlier release of default"):
        releases.previous_release(tmp_path, "default", SECOND)


def test_the_url_is_an_output_of_a_deployed_stack() -> None:
    output = {"OutputKey": "McpUrl", "OutputValue": "https://t.example/mcp"}
    assert releases.endpoint(account({"Outputs": [output]}), "s") == "https://t.example/mcp"
    undeployed: tuple[dict[str, Any] | None, ...] = (None, {"Outputs": []})
    for without in undeployed:
        with pytest.raises(Refused, match="The stack s"):
            releases.endpoint(account(without), "s")
