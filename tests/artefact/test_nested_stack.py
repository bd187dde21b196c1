"""Tools of a nested stack behind one front door, built and deployed to ministack by sam."""

import anyio
import pytest

from mcp_roundtrip_tools.new_tool.plan import plan_files, write
from support.aws_account import Cloud, Stack, deploy
from support.clients import Connect, Person, fast_mcp, official
from support.project import TASK_TOOL, TOOL, copy_project
from support.sam_build import build_project

pytestmark = pytest.mark.anyio

WORKER_S = 60
WORDS = {"value": "words"}


@pytest.fixture(scope="module")
def stack(account: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Stack:
    """Return the stack of this project with two tools in a nested stack."""
    project = copy_project(tmp_path_factory.mktemp("project"))
    write(plan_files(project, TOOL, stack="more"))
    write(plan_files(project, TASK_TOOL, tasks=True, stack="more"))
    built = build_project(project, tmp_path_factory.mktemp("built") / "build")
    return deploy(account, built, "two-stacks", AuthMode="none")


def test_the_functions_of_a_nested_stack_have_names_that_the_front_door_finds(stack: Stack) -> None:
    nested = Stack(stack.cloud, stack.resources["MoreStack"])
    assert nested.resources["ScratchToolFunction"] == f"two-stacks_{TOOL}"
    assert nested.resources["ScratchTaskWorkerFunction"] == f"two-stacks_{TASK_TOOL}_worker"
    assert "ScratchToolFunction" not in stack.resources


@pytest.mark.parametrize("path", ["/mcp", "/tools/{tool}"])
@pytest.mark.parametrize(("tool", "connect"), [(TOOL, official), (TASK_TOOL, fast_mcp)])
async def test_a_tool_of_a_nested_stack_completes(
    stack: Stack, path: str, tool: str, connect: Connect
) -> None:
    with anyio.fail_after(WORKER_S):
        async with connect(stack.endpoint(path.format(tool=tool)), Person([WORDS])) as client:
            result = await client.call(tool, {"text": "Ask before you count."})
    assert result == {"length": 4, "unit": "words"}


def test_a_worker_of_a_nested_stack_ran_the_task(stack: Stack) -> None:
    written = stack.cloud.client("dynamodb").scan(TableName=stack.resources["TaskTable"])["Items"]
    assert any(item.get("st", {}).get("S") == "completed" for item in written)
