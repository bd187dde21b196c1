"""Tasks while DynamoDB fails, and tasks with values that cannot be stored: no task is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from mypy_boto3_dynamodb import DynamoDBClient

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.errors import Drift, UsageError
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.tasks.items import TaskHistory
from mcp_roundtrip.tasks.model import TASK, Task
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip.telemetry import LogObserver
from mcp_roundtrip_local.http.messages import Request, Response
from support.dynamodb_clients import Wire, behind, new_table
from support.task_deployment import World, accepted

pytest_plugins = ["support.ministack"]

MISSING = (400, "ResourceNotFoundException")
THROTTLED = (400, "ThrottlingException")
OVERLOADED = (400, "ProvisionedThroughputExceededException")
DENIED = (400, "AccessDeniedException")

WRITES = ("PutItem", "UpdateItem")
ALL = (*WRITES, "GetItem", "Query")

TROUBLES: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "missing": dict.fromkeys(ALL, MISSING),
    "throttled": dict.fromkeys(ALL, THROTTLED),
    "overloaded": dict.fromkeys(ALL, OVERLOADED),
    "read-only": dict.fromkeys(WRITES, DENIED),
}

SECRETS = ("s3cret-argument", "s3cret-answer", "s3cret-step")

server = Server("trouble")
ran: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    ran.clear()


def did(what: str) -> str:
    ran.append(what)
    return what


@server.tool(task="required")
def provision(ctx: Context, name: str) -> str:
    ctx.run_as_task()
    made = ctx.step("create", did, "s3cret-step")
    kept = ctx.elicit("keep", f"Keep {name}?", str)
    return ctx.step("activate", did, f"{made} {kept}")


@dataclass
class TroubledWire(Wire):
    """Refuses these operations, each with its answer, for as long as they are in `trouble`."""

    trouble: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: Request) -> Response:
        operation = (request.header("x-amz-target") or "").partition(".")[2]
        self.requests.append(json.loads(request.body))
        if operation in self.trouble:
            self.refuse = [self.trouble[operation]]
        return super().__call__(request)


@pytest.fixture
def wire(ministack: str) -> TroubledWire:
    return TroubledWire(ministack)


@pytest.fixture
def world(wire: TroubledWire, ministack_dynamodb: DynamoDBClient) -> Iterator[World]:
    table = new_table(ministack_dynamodb)
    with behind(wire) as dynamodb:
        yield World(server, store=DynamoStore(dynamodb, table))


@pytest.fixture(params=TROUBLES.values(), ids=list(TROUBLES))
def trouble(request: pytest.FixtureRequest) -> Any:
    return request.param


def parked(world: World) -> str:
    task_id = world.start("provision", name="s3cret-argument")
    world.run_workers()
    assert world.status(task_id) == "input_required"
    return task_id


def assert_unavailable(response: Any, world: World, trouble: Mapping[str, tuple[int, str]]) -> None:
    """The client gets the correlation id only; the log has the error of AWS."""
    error = response["error"]
    assert (error.keys(), error["code"]) == ({"code", "message"}, -32603)
    assert error["message"] == "Internal error. Quote id to the server's operator."
    event, failure = world.observer.failures[-1]
    assert event == "task_table_unavailable"
    assert isinstance(failure, StoreError)
    assert failure.reason == trouble["UpdateItem"][1]


def assert_finishes(world: World, task_id: str) -> None:
    world.run_workers()
    if "inputRequests" in world.get(task_id)["result"]:
        world.update(task_id, keep=accepted("s3cret-answer"))
        world.run_workers()
    done = world.get(task_id)["result"]
    assert done["result"]["content"][0]["text"] == "s3cret-step s3cret-answer"
    assert ran == ["s3cret-step", "s3cret-step s3cret-answer"], "no step ran twice"


# -- a table that does not do its part, as its clients see it


def test_without_its_table_no_task_is_said_to_exist(world: World, wire: Any, trouble: Any) -> None:
    wire.trouble = trouble
    assert_unavailable(world.call("provision", arguments={"name": "db"}), world, trouble)
    assert not world.table.dispatcher.sent
    wire.trouble = {}
    assert_finishes(world, world.start("provision", name="db"))


@pytest.mark.parametrize("written", range(2))
def test_a_task_that_was_written_in_part_is_none(written: int) -> None:
    world = World(server)
    taken: list[str] = []

    class Breaks:
        def put_new(self, item: Any) -> None:
            if len(taken) == written:
                raise StoreError("ThrottlingException")
            taken.append(item["sk"])

    breaking: Any = Breaks()
    refused = world.post("tools/call", name="provision", arguments={"name": "db"}, store=breaking)
    assert refused["error"]["code"] == -32603
    assert not world.table.dispatcher.sent
    assert len(taken) == written
    assert TASK not in taken, "what makes it a task is written last"


def test_a_poll_that_cannot_read_loses_nothing(world: World, wire: Any) -> None:
    task_id = parked(world)
    for name in ("missing", "throttled", "overloaded"):
        wire.trouble = TROUBLES[name]
        assert_unavailable(world.get(task_id), world, TROUBLES[name])
    wire.trouble = {}
    assert_finishes(world, task_id)


def test_a_poll_needs_to_write_only_if_there_is_something_to_do(world: World, wire: Any) -> None:
    task_id = world.start("provision", name="db")
    wire.trouble = TROUBLES["read-only"]
    assert world.status(task_id) == "working"
    wire.trouble = {}
    world.run_workers()
    wire.trouble = TROUBLES["read-only"]
    assert world.status(task_id) == "input_required"


def test_an_answer_that_cannot_be_written_is_not_acknowledged(world: World, wire: Any, trouble: Any) -> None:
    task_id = parked(world)
    wire.trouble = trouble
    assert_unavailable(world.update(task_id, keep=accepted("s3cret-answer")), world, trouble)
    wire.trouble = {}
    assert world.get(task_id)["result"]["inputRequests"].keys() == {"keep"}
    assert_finishes(world, task_id)


def test_of_an_answer_that_was_written_and_not_acknowledged_the_first_counts(world: World, wire: Any) -> None:
    task_id = parked(world)
    wire.trouble = {"UpdateItem": THROTTLED}
    assert world.update(task_id, keep=accepted("s3cret-answer"))["error"]["code"] == -32603
    wire.trouble = {}
    world.update(task_id, keep=accepted("another"))
    assert_finishes(world, task_id)


def test_an_answer_that_others_overtake_for_ever_is_not_acknowledged() -> None:
    class Overtaken(MemoryStore):
        """Somebody else is always first."""

        def update(self, pk: str, sk: str, change: Any) -> Any:
            answers = "req" in change.set and "iss" not in change.set
            return None if answers else super().update(pk, sk, change)

    world = World(server, store=Overtaken())
    task_id = parked(world)
    assert world.update(task_id, keep=accepted("s3cret-answer"))["error"]["code"] == -32603
    assert world.status(task_id) == "input_required"


def test_a_cancellation_that_cannot_be_written_is_not_acknowledged(
    world: World, wire: Any, trouble: Any
) -> None:
    task_id = parked(world)
    wire.trouble = trouble
    assert_unavailable(world.cancel(task_id), world, trouble)
    wire.trouble = {}
    assert_finishes(world, task_id)


def test_what_is_read_is_what_was_written_last(world: World, wire: Any) -> None:
    task_id = parked(world)
    world.update(task_id, keep=accepted("s3cret-answer"))
    assert_finishes(world, task_id)
    read = [
        sent
        for sent, operation in zip(wire.requests, wire.operations, strict=True)
        if operation in ("GetItem", "Query")
    ]
    assert read
    assert all(sent["ConsistentRead"] is True for sent in read)


# -- and as its workers do


def test_a_worker_that_is_refused_leaves_the_task_to_the_next_delivery(
    world: World, wire: Any, trouble: Any
) -> None:
    task_id = world.start("provision", name="db")
    delivery = world.table.dispatcher.sent[0]
    wire.trouble = trouble
    with pytest.raises(StoreError):
        world.run_worker()
    wire.trouble = {}
    world.table.dispatcher.sent.append(delivery)
    assert_finishes(world, task_id)


@pytest.mark.parametrize("refused", ["Query", "PutItem", "GetItem"])
def test_a_worker_that_is_refused_in_its_work_gives_the_lease_back(
    world: World, wire: Any, refused: str
) -> None:
    task_id = world.start("provision", name="db")
    delivery = world.table.dispatcher.sent[0]
    wire.trouble = {refused: THROTTLED}
    with pytest.raises(StoreError):
        world.run_worker()
    wire.trouble = {}
    ran.clear()  # what could not be journaled runs again
    world.table.dispatcher.sent.append(delivery)
    assert_finishes(world, task_id)


@pytest.mark.parametrize("refused", [("Query", "UpdateItem"), ("PutItem", "UpdateItem")])
def test_a_worker_that_cannot_even_give_the_lease_back_is_replaced_when_it_is_over(
    world: World, wire: Any, refused: tuple[str, ...]
) -> None:
    task_id = world.start("provision", name="db")
    pk = world.table.dispatcher.sent[0][1]

    class AfterTheClaim:
        """The table fails as soon as the worker has its lease."""

        def update(self, *change: Any) -> Any:
            item = world.store.update(*change)
            wire.trouble = dict.fromkeys(refused, OVERLOADED)
            return item

        def __getattr__(self, name: str) -> Any:
            return getattr(world.store, name)

    failing: Any = AfterTheClaim()
    with pytest.raises(StoreError):
        world.run_worker(failing)
    wire.trouble = {}
    held = world.store.get(pk, TASK)
    assert held is not None
    assert "lo" in held
    ran.clear()
    world.get(task_id)
    assert not world.table.dispatcher.sent, "while the lease lasts"
    world.clock.advance(1_000)
    world.get(task_id)
    assert len(world.table.dispatcher.sent) == 1
    assert_finishes(world, task_id)


# -- what the log says


def test_the_log_names_the_aws_error_and_holds_no_secret(
    world: World, wire: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    observer: Any = LogObserver()
    world.observer = observer
    task_id = parked(world)
    for name, trouble in TROUBLES.items():
        wire.trouble = trouble
        world.call("provision", arguments={"name": "s3cret-argument"})
        world.update(task_id, keep=accepted("s3cret-answer"))
        wire.trouble = {}
        logged = capsys.readouterr().out
        assert trouble["UpdateItem"][1] in logged, name
        assert "task_table_unavailable" in logged
        assert not any(secret in logged for secret in SECRETS)
    assert_finishes(world, task_id)
    assert not any(secret in capsys.readouterr().out for secret in SECRETS)


# -- values that are too large


def items_of(world: World, pk: str) -> tuple[Task, TaskHistory]:
    """What is in the table, as a worker reads it."""
    item = world.table.store.get(pk, TASK)
    assert item is not None
    task = Task.from_item(item)
    return task, TaskHistory.from_items(task, world.table.store.query(pk))


def test_arguments_that_no_item_holds_make_no_task() -> None:
    world = World(server)
    response = world.call("provision", arguments={"name": "x" * 500_000})
    assert response.get("result", {}).get("resultType") != "task"
    assert not world.table.dispatcher.sent
    (_, failure) = world.observer.failures[-1]
    assert isinstance(failure, ItemTooLarge)
    assert failure.size > failure.limit


@pytest.mark.parametrize(
    "result", [float("nan"), object(), {1: object()}], ids=lambda result: type(result).__name__
)
def test_a_step_that_returns_no_json_is_a_failure_of_the_tool_that_the_log_explains(result: Any) -> None:
    other = Server("other")

    @other.tool(task="required")
    def returns(ctx: Context) -> None:
        ctx.run_as_task()
        ctx.step("much", lambda: result)

    world = World(other)
    task_id = world.start("returns")
    world.run_workers()
    done = world.get(task_id)["result"]
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    event, failure = world.observer.failures[-1]
    assert event == "tool_raised"
    assert isinstance(failure, UsageError)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_arguments_that_are_no_json_make_no_task(number: str) -> None:
    world = World(server)
    request = world.body("tools/call", name="provision", arguments={"name": "@"})
    body = json.dumps(request).replace('"@"', number)
    refused = world.send(request, text=body)
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (400, -32700)
    assert not world.table.dispatcher.sent


def failed_by_the_next(world: World, changed: Server) -> tuple[dict[str, Any], TaskHistory]:
    """Park a task, answer it, let another build work on it; how it ended, and what is left in the table."""
    task_id = world.start("provision", name="s3cret-argument")
    pk = world.table.dispatcher.sent[0][1]
    world.run_workers()
    later = world.next_deployment(changed)
    later.update(task_id, keep=accepted("s3cret-answer"))
    later.run_workers()
    return later.get(task_id)["result"], items_of(later, pk)[1]


def test_a_task_whose_code_changed_fails_with_the_reason_and_keeps_its_journal() -> None:
    changed = Server("trouble")

    @changed.tool(task="required")
    def provision(ctx: Context, name: str) -> str:
        ctx.run_as_task()
        return ctx.elicit("create", "Create?", str)

    world = World(server)
    failed, past = failed_by_the_next(world, changed)
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert "'create'" in failed["statusMessage"]
    event, failure = world.observer.failures[-1]
    assert event == "drift"
    assert isinstance(failure, Drift)
    assert {entry.key: entry.value for entry in past.journal.entries} == {"create": "s3cret-step"}
    assert past.responses == {"keep": accepted("s3cret-answer")}
    assert past.call.arguments == {"name": "s3cret-argument"}


def another(ctx: Context) -> None:
    ctx.run_as_task()


def test_a_task_whose_tool_was_removed_fails_and_keeps_its_journal() -> None:
    changed = Server("trouble")
    changed.tool(task="required")(another)
    failed, past = failed_by_the_next(World(server), changed)
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert [entry.key for entry in past.journal.entries] == ["create"]


def test_a_task_whose_tool_takes_other_arguments_ends_in_a_tool_error_and_keeps_its_journal() -> None:
    changed = Server("trouble")

    @changed.tool(task="required")
    def provision(ctx: Context, title: str) -> str:
        raise AssertionError("never called")

    ended, past = failed_by_the_next(World(server), changed)
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)
    assert [entry.key for entry in past.journal.entries] == ["create"]


def working(body: Any) -> World:
    """A deployment with a tool `works` that is a task of this body."""
    other = Server("other")

    @other.tool(task="required")
    def works(ctx: Context) -> str:
        ctx.run_as_task()
        return body(ctx)

    return World(other)


class RefusesProgress(MemoryStore):
    def update(self, pk: str, sk: str, change: Any) -> Any:
        if change.set.keys() == {"msg", "uAt"}:
            raise StoreError("ThrottlingException")
        return super().update(pk, sk, change)


def test_a_report_that_cannot_be_written_does_not_end_the_work() -> None:
    world = working(lambda ctx: ctx.progress(1, 2, "half") or "done")
    world.table.store = RefusesProgress()
    task_id = world.start("works")
    world.run_workers()
    assert world.get(task_id)["result"]["result"]["isError"] is False
    assert [event for event, _ in world.observer.failures] == ["progress_write_failed"]


def test_a_report_is_cut_to_what_a_poll_should_carry() -> None:
    world = working(lambda ctx: ctx.progress(1, 2, "x" * 500_000) or "done")
    task_id = world.start("works")
    world.run_workers()
    done = world.get(task_id)["result"]
    assert (done["status"], len(done["statusMessage"])) == ("completed", 4_096)


def test_a_result_that_no_response_holds_is_a_tool_error_as_it_is_without_a_task() -> None:
    world = working(lambda ctx: "x" * 7_000_000)
    task_id = world.start("works")
    world.run_workers()
    done = world.get(task_id)["result"]
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert [event for event, _ in world.observer.failures] == ["result_too_large"]


def test_arguments_that_are_too_large_for_a_task_are_the_models_to_mend() -> None:
    response = World(server).call("provision", arguments={"name": "x" * 500_000})
    assert response["result"]["isError"] is True


@pytest.mark.parametrize("duration_ms", [500.0, 0.5])
def test_a_nap_may_be_given_in_fractions(duration_ms: Any) -> None:
    world = working(lambda ctx: ctx.sleep("nap", duration_ms) or "done")
    task_id = world.start("works")
    world.run_workers()
    world.clock.advance(1)
    world.get(task_id)
    world.run_workers()
    assert world.status(task_id) == "completed"


def test_a_worker_that_fails_says_so_in_the_log(world: World, wire: Any) -> None:
    world.start("provision", name="db")
    wire.trouble = TROUBLES["throttled"]
    with pytest.raises(StoreError):
        world.run_worker()
    event, failure = world.observer.failures[-1]
    assert event == "worker_failed"
    assert isinstance(failure, StoreError)
