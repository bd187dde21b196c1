import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from mcp_roundtrip.aws.dynamodb import to_attributes
from mcp_roundtrip.tasks.model import Task, WorkState
from mcp_roundtrip_tools.prune import Workers, main
from mcp_roundtrip_tools.run.services.ministack import serve_ministack
from support.aws_account import Cloud
from support.dynamodb_clients import new_table
from support.task_items import NEW

STACK = "shop"
TOOL, WORKER, TABLE = "shop_refund", "shop_refund_worker", "shop-tasks"
SERVICES = "cloudformation,dynamodb,iam,lambda,s3,sts"


class Account(Cloud):
    """ministack with a stack of a tool, its worker and the task table."""

    @property
    def lambda_(self) -> Any:
        return self.client("lambda")

    def create_stack(self) -> None:
        shared = {
            "Runtime": "python3.13",
            "Handler": "index.handler",
            "Code": {"ZipFile": "handler = print"},
            "Role": "arn:aws:iam::000000000000:role/any",
            "Environment": {"Variables": {"MCP_TASK_TABLE": TABLE}},
        }
        resources = {
            name: {"Type": "AWS::Lambda::Function", "Properties": {"FunctionName": each, **shared}}
            for name, each in {"Tool": TOOL, "Worker": WORKER, "NoTool": "shop_mail_worker"}.items()
        }
        stacks = self.client("cloudformation")
        stacks.create_stack(StackName=STACK, TemplateBody=json.dumps({"Resources": resources}))
        stacks.get_waiter("stack_create_complete").wait(StackName=STACK, WaiterConfig={"Delay": 1})
        new_table(self.client("dynamodb"), TABLE)

    def publish(self, name: str, **variables: str) -> str:
        self.lambda_.update_function_configuration(
            FunctionName=name, Environment={"Variables": {"MCP_TASK_TABLE": TABLE, **variables}}
        )
        return str(self.lambda_.publish_version(FunctionName=name)["FunctionArn"])

    def send_traffic(self, name: str, arn: str, **shifting: float) -> None:
        number = arn.rpartition(":")[2]
        routing = {"AdditionalVersionWeights": shifting}
        self.lambda_.create_alias(
            FunctionName=name, Name="live", FunctionVersion=number, RoutingConfig=routing
        )

    def add(self, task: Task) -> None:
        self.client("dynamodb").put_item(TableName=TABLE, Item=to_attributes(task.to_item()))

    def numbers(self) -> list[str]:
        versions = self.lambda_.list_versions_by_function(FunctionName=WORKER)["Versions"]
        return [each["Version"] for each in versions if each["Version"] != "$LATEST"]


@pytest.fixture(scope="module")
def account(tmp_path_factory):
    with serve_ministack({"SERVICES": SERVICES}) as url:
        account = Account(url, tmp_path_factory.mktemp("account"))
        account.create_stack()
        yield account


FAR = 10**15
"""A time to live that ends long after this test, in milliseconds."""


def test_only_versions_that_nothing_needs_are_deleted(account, capsys):
    published = [account.publish(WORKER, N=str(n)) for n in range(10)]
    first, second, third, fourth, fifth, sixth, seventh, *_, last = published
    tool = account.publish(TOOL, MCP_TASK_WORKER=seventh)
    account.publish(TOOL, MCP_TASK_WORKER=fifth)  # not deployed
    account.send_traffic(TOOL, tool)
    account.send_traffic(WORKER, fourth, **{sixth.rpartition(":")[2]: 0.1})
    account.add(replace(NEW, worker=second, ttl_ms=FAR, expires_s=FAR))
    account.add(
        replace(NEW, pk="a#2", worker=second, ttl_ms=FAR, expires_s=FAR, work_state=WorkState.SLEEPING)
    )
    account.add(replace(NEW, pk="a#3", worker=first, ttl_ms=FAR, expires_s=FAR, work_state=WorkState.DONE))
    account.add(replace(NEW, pk="a#4", worker=third, created_at_ms=1))

    assert main(["--stack", STACK], account.client) == 0
    assert len(account.numbers()) == 10, "without --delete, nothing is deleted"
    assert main(["--stack", STACK, "--delete"], account.client) == 0
    assert account.numbers() == [each.rpartition(":")[2] for each in (second, fourth, sixth, seventh, last)]
    lines = capsys.readouterr().out.splitlines()
    reasons = ["", "2 .* tasks", "", "alias", "", "alias", "tool", "", "", "newest"]
    shown = [f"kept: .*{reason}.*" if reason else "unused" for reason in reasons]
    assert re.fullmatch("\n".join(shown), "\n".join(line.rpartition("  ")[2] for line in lines[:10]))


def test_an_account_that_cannot_be_read_is_an_error(account, capsys):
    assert main(["--stack", "absent", "--delete"], account.client) == 2
    assert "absent" in capsys.readouterr().err


def test_workers_of_nested_stacks_are_found():
    nested = "arn:aws:cloudformation:eu-west-1:000000000000:stack/tools-More-1/id"
    resources = {
        "tools": [("AWS::Lambda::Function", "tools_a_worker"), ("AWS::CloudFormation::Stack", nested)],
        nested: [("AWS::Lambda::Function", name) for name in ("tools_b_worker", "tools_b", "tools_a")],
    }

    def paginate(StackName: str) -> list[Any]:
        found = [{"ResourceType": kind, "PhysicalResourceId": name} for kind, name in resources[StackName]]
        return [{"StackResourceSummaries": found}]

    paginator = SimpleNamespace(paginate=paginate)
    cloudformation = SimpleNamespace(get_paginator=lambda _: paginator)
    workers = Workers.of_stack(lambda _: cloudformation, "tools")
    assert workers.names == ("tools_a_worker", "tools_b_worker")
