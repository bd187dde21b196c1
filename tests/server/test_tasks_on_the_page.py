"""Questions of tasks whose clients cannot show them: on the page, with the link in `statusMessage`."""

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION
from mcp_roundtrip.tasks.question_links import QuestionLinks
from support.parked_deployment import TOKEN
from support.task_deployment import DECLARED, TaskDeployment, accepted

TASKS_ONLY = {"extensions": {TASKS_EXTENSION: {}}}

server = Server("tasks")
effects: list[str] = []


def effect(name: str) -> str:
    effects.append(name)
    return name


@server.tool(task="required")
def provision(ctx: Context) -> str:
    """Create, ask twice, and finish."""
    ctx.run_as_task()
    ctx.step("create", effect, "created")
    size = ctx.elicit("size", "How large?", int)
    ctx.elicit("keep", "Keep it?", bool)
    return ctx.step("finish", effect, f"size {size}")


@server.tool(task="required", channels=("default",))
def defaults(ctx: Context) -> bool:
    """Ask with a default."""
    ctx.run_as_task()
    return ctx.elicit("keep", "Keep it?", bool, default=False)


@pytest.fixture
def deployment():
    effects.clear()
    return TaskDeployment(server, capabilities=TASKS_ONLY)


def ask(deployment):
    task_id = deployment.start("provision")
    deployment.run_workers()
    return task_id


def link(task):
    [token] = TOKEN.findall(task["statusMessage"])
    return token


def links(deployment):
    return QuestionLinks(deployment.table.port().tasks)


def test_the_task_stays_working_and_its_status_message_has_the_link(deployment):
    task = deployment.get(ask(deployment))["result"]
    assert task["status"] == "working"
    assert "inputRequests" not in task
    assert links(deployment).find(link(task)).requests.keys() == {"size"}


def test_an_answer_on_the_page_dispatches_the_worker_and_the_task_ends(deployment):
    task_id = ask(deployment)
    first = link(deployment.get(task_id)["result"])
    assert links(deployment).answer(first, {"size": accepted(3)}) == "stored"
    assert "statusMessage" not in deployment.get(task_id)["result"]
    deployment.run_workers()
    second = link(deployment.get(task_id)["result"])
    assert second != first
    assert links(deployment).answer(second, {"keep": accepted(True)}) == "stored"
    deployment.run_workers()
    task = deployment.get(task_id)["result"]
    assert (task["status"], task["result"]["content"][0]["text"]) == ("completed", "size 3")
    assert effects == ["created", "size 3"]


def test_the_client_cannot_answer_what_the_page_asks(deployment):
    task_id = ask(deployment)
    deployment.update(task_id, size=accepted(3))
    assert not deployment.table.dispatcher.sent
    assert links(deployment).find(link(deployment.get(task_id)["result"])).state == "open"


def test_a_declined_question_ends_the_task_with_an_error_for_the_model(deployment):
    task_id = ask(deployment)
    links(deployment).answer(link(deployment.get(task_id)["result"]), {"size": {"action": "decline"}})
    deployment.run_workers()
    task = deployment.get(task_id)["result"]
    assert task["status"] == "completed"
    assert task["result"]["isError"] is True


def test_the_link_ends_with_the_task(deployment):
    task_id = ask(deployment)
    token = link(deployment.get(task_id)["result"])
    deployment.cancel(task_id)
    assert links(deployment).answer(token, {"size": accepted(3)}) == "ended"
    assert deployment.status(task_id) == "cancelled"


def test_a_client_that_can_be_asked_is_asked_by_the_protocol(deployment):
    deployment.capabilities = DECLARED
    task = deployment.get(ask(deployment))["result"]
    assert task["status"] == "input_required"
    assert task["inputRequests"].keys() == {"size"}
    assert "statusMessage" not in task


def test_without_the_channel_a_question_takes_its_default(deployment):
    task_id = deployment.start("defaults")
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["structuredContent"] in (False, {"result": False})
