import json

import pytest

from mcp_roundtrip_testing import CANCEL, DECLINE, WITH_TASKS, PlayedTask, Player, crashes, load_module
from support.example_services import stand_in
from support.project import FUNCTIONS

APP = FUNCTIONS / "provision/app.py"
STAND_IN = FUNCTIONS.parent / "development/stand_ins/databases.py"

pytest_plugins = ["support.example_services"]

pytestmark = pytest.mark.usefixtures("example_services")

NAME = {"name": "orders"}


@pytest.fixture
def play():
    return Player(APP, WITH_TASKS, always_replay=True)


@pytest.fixture
def inline():
    return Player(APP, always_replay=True)


def provisioning(play: Player) -> PlayedTask:
    """Return a task that has created the database and asks whether to keep it."""
    return play.call("provision_database", NAME, size="large", region="us-east-1").task


def test_the_regions_to_choose_from_are_those_of_the_size(inline):
    for size, regions in load_module(STAND_IN).PRICES.items():
        asked = inline.call("provision_database", NAME, size=size)
        assert asked.asked.keys() == {"region"}
        form = asked.asked["region"]["params"]["requestedSchema"]
        assert form["properties"]["value"]["enum"] == list(regions)


def test_a_call_keeps_the_price_list_of_its_first_question(play):
    with stand_in("databases", "DATABASES_API_URL") as provider:
        assert provisioning(play).answer(keep=True).structured
    assert provider.paths.count("/v1/prices") == 1


def test_rounds_precede_the_task_which_asks_the_last_question(play):
    task = provisioning(play)
    assert (task.status, task.detailed["ttlMs"]) == ("input_required", 3_600_000)
    assert task.asked.keys() == {"keep"}
    assert "$397.12" in task.question("keep")


@pytest.mark.parametrize("answer", [False, DECLINE, CANCEL])
def test_a_rejected_database_is_deleted(play, answer):
    assert provisioning(play).answer(keep=answer).structured["host"] is None


def test_a_database_is_activated_wherever_a_worker_is_lost():
    server = load_module(APP).server  # the other tests load it in each round
    for play in crashes(lambda: Player(server, WITH_TASKS)):
        asked = play.call("provision_database", {**NAME, "region": "us-east-1"}, size="large")
        made = asked.task.answer(keep=True).structured
        assert (made["name"], made["size"], made["region"]) == ("orders", "large", "us-east-1")
        assert made["host"] == f"{made['id']}.us-east-1.databases.example"


def test_each_call_creates_one_database_and_logs_its_activation_once(play, caplog):
    ids = [provisioning(play).answer(keep=True).structured["id"] for _ in range(2)]
    assert ids[0] != ids[1]
    logged = [(record.msg, record.__dict__["database"]) for record in caplog.records]
    assert logged == [("database_activated", each) for each in ids]


@pytest.mark.parametrize(("region", "asked"), [("us-east-1", "keep"), ("eu-south-9", "region")])
def test_a_given_region_of_the_size_is_not_asked(inline, region, asked):
    found = inline.call("provision_database", {**NAME, "region": region}, size="small")
    assert found.asked.keys() == {asked}
    assert asked != "keep" or region in found.question("keep")


def test_a_repeated_creation_with_the_same_key_creates_no_second_database():
    create = load_module(FUNCTIONS / "provision/databases.py").create
    first, second, other = (create("orders", "small", "eu-west-1", key) for key in ("a", "a", "b"))
    assert first == second
    assert first.id != other.id


@pytest.mark.parametrize("name", ["", "Orders", "-orders", "o" * 41, 1])
def test_an_invalid_name_is_a_tool_error(inline, name):
    assert inline.call("provision_database", {"name": name}).failed


@pytest.mark.parametrize("refusal", [DECLINE, CANCEL])
def test_a_declined_question_creates_no_database(inline, refusal):
    assert inline.call("provision_database", NAME, size=refusal).failed
    assert inline.call("provision_database", NAME, size="small", region=refusal).failed


def test_the_price_list_matches_the_service(play):
    read = play.read("provision://prices")
    [held] = read.contents
    assert held["mimeType"] == "application/json"
    assert json.loads(held["text"]) == {"unit": "US cents a month", "prices": load_module(STAND_IN).PRICES}
    assert (read.result["ttlMs"], read.result["cacheScope"]) == (3_600_000, "public")
