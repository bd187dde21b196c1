"""The template and the output of `sam build`, deployed with `sam deploy` to ministack.

The template is modified only where its comments say so: the variables of the examples' services are set.
Third-party clients drive the endpoint. Every function has exactly the permissions of its role.
support/aws_account.py describes the account and its differences from AWS.
"""

import json
import re
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from mcp_roundtrip_tools.run.services.stand_ins import serve_stand_ins
from support.aws_account import adapted, deploy
from support.clients import SUMMARY, Person, fast_mcp, official
from support.example_calls import CALLS
from support.project import ROOT

pytestmark = pytest.mark.anyio

FRONT_DOOR = "/mcp"
STATE_POLICY = "StatePolicy"

TOKEN = "personal-access-token"
"""The personal access token for Azure DevOps."""

WORKERS = 2
"""The first worker stops at the question, and a second one resumes after the answer."""

WORKER_S = 60


@pytest.fixture(scope="module")
def stack(account, built, services, tmp_path_factory):
    secrets = account.client("secretsmanager")
    secrets.create_secret(Name="mcp-roundtrip/azure-devops", SecretString=TOKEN)
    template = adapted(built, tmp_path_factory.mktemp("template"), services, TaskDelivery="queue")
    return deploy(account, built, "mcp-roundtrip", template, AuthMode="none")


@pytest.fixture(scope="module")
def services():
    """Yield variables with the stand-ins of the services that the examples call."""
    with serve_stand_ins(ROOT / "template.yaml") as variables:
        yield {name: value for name, value in variables.items() if name != "AZURE_DEVOPS_SECRET"}


def test_the_template_is_deployed(stack):
    assert stack.description["StackStatus"] == "CREATE_COMPLETE"
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.description["Outputs"]}
    # The emulator's Api.ApiEndpoint is its own address.
    address = rf"https?://{stack.resources['Platform.Api']}\.execute-api\.[a-z0-9.:-]+{FRONT_DOOR}"
    assert re.fullmatch(address, outputs["McpUrl"])


@pytest.mark.parametrize("tool", CALLS)
async def test_a_tool_completes_on_its_own_route(stack, tool):
    await assert_call_completes(stack.endpoint(CALLS[tool].route), tool)


async def assert_call_completes(url: str, tool: str, connect: Any = official) -> None:
    call = CALLS[tool]
    person = Person(list(call.answers))
    async with connect(url, person) as client:
        content = await client.call(tool, call.arguments)
    assert call.expected.items() <= content.items()
    assert person.answers == []


async def test_a_client_that_follows_tasks_gets_the_result_of_a_worker_that_a_queue_triggers(stack):
    assert "ProvisionTasks" in stack.resources
    with anyio.fail_after(WORKER_S):
        await assert_call_completes(stack.endpoint(FRONT_DOOR), "provision_database", fast_mcp)
    assert stack.task_states() == {"completed": 1}
    with anyio.fail_after(WORKER_S):
        while "".join(stack.logs()["provision_worker"]).count('"type": "platform.start"') < WORKERS:
            await anyio.sleep(0.1)  # workers are logged at their end, after the end of the task


async def test_tools_complete_behind_the_front_door_and_log_neither_answers_nor_states(stack):
    url = stack.endpoint(FRONT_DOOR)
    for tool in CALLS:
        await assert_call_completes(url, tool)
    logs = stack.logs()
    for name in ("front_door", "weather", "work_items", "summarize", "provision"):
        lines = [json.loads(line) for line in logs[name] if line.startswith("{")]
        assert "request_completed" in [line.get("message") for line in lines], name
    everything = json.dumps(logs)
    answers = ("Hyderabad, Sindh, Pakistan", "Duplicate", SUMMARY)
    for secret in (*answers, "eu-west-1.databases.example", "eyJ", TOKEN):
        assert secret not in everything


async def test_a_function_without_the_policy_of_its_role_cannot_ask(stack):
    """Roles are the only source of permissions in the tests above."""
    policy = {
        "RoleName": stack.resources["WeatherRole"],
        "PolicyArn": stack.resources[f"Platform.{STATE_POLICY}"],
    }
    iam = stack.cloud.client("iam")
    iam.detach_role_policy(**policy)
    with pytest.raises(ExceptionGroup) as refused:
        await assert_call_completes(stack.endpoint(FRONT_DOOR), "get_weather")
    iam.attach_role_policy(**policy)
    await assert_call_completes(stack.endpoint(FRONT_DOOR), "get_weather")
    assert refused.group_contains(MCPError)
