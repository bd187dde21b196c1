from typing import Any

import pytest

from mcp_roundtrip.protocol.methods import TASKS_EXTENSION
from mcp_roundtrip.server.task_worker import work
from mcp_roundtrip.testing import CANCEL, DECLINE, FakeClock, Player, load_module
from mcp_roundtrip.testing.environment import make_ports
from mcp_roundtrip.testing.player import EVERYTHING
from mcp_roundtrip.testing.tasks import TaskTable
from support.functions import FUNCTIONS

APP = FUNCTIONS / "provision/app.py"
PRICES = load_module(FUNCTIONS / "provision/cloud.py").PRICES

NAME = {"name": "orders"}
WITH_TASKS = {**EVERYTHING, "extensions": {TASKS_EXTENSION: {}}}
KEEP, DROP = ({"action": "accept", "content": {"value": value}} for value in (True, False))


class Deployment:
    """A client with tasks and the workers, which share a table alone; every pass loads the module anew."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.table = TaskTable(self.clock)
        self.play = Player(APP, WITH_TASKS, clock=self.clock, ports={"tasks": self.table})

    def start(self) -> str:
        created = self.play.call("provision_database", NAME, size="large", region="us-east-1").result
        assert created["resultType"] == "task"
        return str(created["taskId"])

    def run_workers(self) -> None:
        while self.table.kicks.sent:
            _, pk = self.table.kicks.sent.popleft()
            server = load_module(APP).server
            work(
                server._tool_server,
                {"task": pk},
                None,
                lambda: make_ports(clock=self.clock, tasks=self.table),
            )

    def get(self, task_id: str) -> Any:
        self.run_workers()
        return self.play.request("tasks/get", taskId=task_id)["result"]

    def update(self, task_id: str, **responses: Any) -> None:
        assert "result" in self.play.request("tasks/update", taskId=task_id, inputResponses=responses)


@pytest.fixture
def deployment() -> Deployment:
    return Deployment()


@pytest.fixture
def inline() -> Player:
    return Player(APP, always_replay=True)


def test_the_regions_to_choose_from_are_those_of_the_size(inline: Player) -> None:
    for size, regions in PRICES.items():
        asked = inline.call("provision_database", NAME, size=size)
        assert asked.asked.keys() == {"region"}
        form = asked.asked["region"]["params"]["requestedSchema"]
        assert form["properties"]["value"]["enum"] == list(regions)


def test_a_region_without_the_size_is_asked_again(inline: Player) -> None:
    again = inline.call("provision_database", NAME, size="large", region="eu-central-1")
    assert again.asked.keys() == {"region"}


def test_the_rounds_come_first_and_the_last_question_is_the_tasks(deployment: Deployment) -> None:
    waiting = deployment.get(deployment.start())
    assert (waiting["status"], waiting["ttlMs"]) == ("input_required", 3_600_000)
    assert waiting["inputRequests"].keys() == {"keep"}
    assert "$397.12" in waiting["inputRequests"]["keep"]["params"]["message"]


def test_a_database_that_is_kept_is_activated(deployment: Deployment) -> None:
    task_id = deployment.start()
    assert deployment.get(task_id)["status"] == "input_required"
    deployment.update(task_id, keep=KEEP)
    done = deployment.get(task_id)
    assert done["status"] == "completed"
    made = done["result"]["structuredContent"]
    assert (made["name"], made["size"], made["region"]) == ("orders", "large", "us-east-1")
    assert made["host"].startswith(made["id"])


@pytest.mark.parametrize("answer", [DROP, DECLINE, CANCEL])
def test_a_database_that_nobody_wants_to_pay_for_is_given_back(deployment: Deployment, answer: Any) -> None:
    task_id = deployment.start()
    assert deployment.get(task_id)["status"] == "input_required"
    deployment.update(task_id, keep=answer)
    done = deployment.get(task_id)
    assert done["status"] == "completed"
    assert done["result"]["structuredContent"]["host"] is None


def test_a_client_without_tasks_is_asked_everything_round_by_round(inline: Player) -> None:
    asked = inline.call("provision_database", NAME, size="small", region="eu-west-1")
    assert asked.asked.keys() == {"keep"}
    assert "$26.28" in asked.question("keep")
    assert asked.answer(keep=True).structured["host"]
    assert asked.answer(keep=DECLINE).structured["host"] is None


def test_a_call_makes_one_database_and_another_call_another(deployment: Deployment) -> None:
    ids = set()
    for task_id in (deployment.start(), deployment.start()):
        assert deployment.get(task_id)["status"] == "input_required"
        deployment.update(task_id, keep=KEEP)
        ids.add(deployment.get(task_id)["result"]["structuredContent"]["id"])
    assert len(ids) == 2


def test_a_creation_that_is_repeated_with_its_token_makes_no_second_database() -> None:
    create = load_module(FUNCTIONS / "provision/cloud.py").create
    first, second, other = (create("orders", "small", "eu-west-1", token) for token in ("a", "a", "b"))
    assert first == second
    assert first.id != other.id


@pytest.mark.parametrize("name", ["", "Orders", "-orders", "o" * 41, 1])
def test_a_name_that_is_none_is_a_tool_error(inline: Player, name: object) -> None:
    assert inline.call("provision_database", {"name": name}).failed


@pytest.mark.parametrize("refusal", [DECLINE, CANCEL])
def test_a_user_who_does_not_say_what_is_wanted_gets_nothing(inline: Player, refusal: object) -> None:
    assert inline.call("provision_database", NAME, size=refusal).failed
    assert inline.call("provision_database", NAME, size="small", region=refusal).failed


def test_a_client_without_elicitation_is_told_what_is_missing() -> None:
    refused = Player(APP, capabilities={}).call("provision_database", NAME)
    assert refused.error["code"] == -32021
