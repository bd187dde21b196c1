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
from support.task_deployment import TaskDeployment, accepted

pytest_plugins = ["support.ministack"]

MISSING = (400, "ResourceNotFoundException")
THROTTLED = (400, "ThrottlingException")
OVERLOADED = (400, "ProvisionedThroughputExceededException")
DENIED = (400, "AccessDeniedException")

WRITES = ("PutItem", "UpdateItem")
ALL = (*WRITES, "GetItem", "Query")

TABLE_ERRORS: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "missing": dict.fromkeys(ALL, MISSING),
    "throttled": dict.fromkeys(ALL, THROTTLED),
    "overloaded": dict.fromkeys(ALL, OVERLOADED),
    "read-only": dict.fromkeys(WRITES, DENIED),
}

SECRETS = ("s3cret-argument", "s3cret-answer", "s3cret-step")

server = Server("table_errors")
ran: list[str] = []


@pytest.fixture(autouse=True)
def reset_ran() -> None:
    ran.clear()


def record_run(what: str) -> str:
    ran.append(what)
    return what


@server.tool(task="required")
def provision(ctx: Context, name: str) -> str:
    ctx.run_as_task()
    created = ctx.step("create", record_run, "s3cret-step")
    answer = ctx.elicit("keep", f"Keep {name}?", str)
    return ctx.step("activate", record_run, f"{created} {answer}")


@dataclass
class FailingWire(Wire):
    """A wire that refuses the operations in `failing`, each with its error."""

    failing: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    requests: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, request: Request) -> Response:
        operation = (request.header("x-amz-target") or "").partition(".")[2]
        self.requests.append(json.loads(request.body))
        if operation in self.failing:
            self.refuse = [self.failing[operation]]
        return super().__call__(request)


@pytest.fixture
def wire(ministack: str) -> FailingWire:
    return FailingWire(ministack)


@pytest.fixture
def deployment(wire: FailingWire, ministack_dynamodb: DynamoDBClient) -> Iterator[TaskDeployment]:
    table = new_table(ministack_dynamodb)
    with behind(wire) as dynamodb:
        yield TaskDeployment(server, store=DynamoStore(dynamodb, table))


@pytest.fixture(params=TABLE_ERRORS.values(), ids=list(TABLE_ERRORS))
def table_error(request: pytest.FixtureRequest) -> Any:
    return request.param


def parked(deployment: TaskDeployment) -> str:
    task_id = deployment.start("provision", name="s3cret-argument")
    deployment.run_workers()
    assert deployment.status(task_id) == "input_required"
    return task_id


def assert_unavailable(
    response: Any, deployment: TaskDeployment, table_error: Mapping[str, tuple[int, str]]
) -> None:
    """Check that the client gets only the correlation id and the log has the AWS error."""
    error = response["error"]
    assert (error.keys(), error["code"]) == ({"code", "message"}, -32603)
    assert error["message"] == "Internal error. Quote id to the server's operator."
    event, failure = deployment.observer.failures[-1]
    assert event == "task_table_unavailable"
    assert isinstance(failure, StoreError)
    assert failure.reason == table_error["UpdateItem"][1]


def assert_completes(deployment: TaskDeployment, task_id: str) -> None:
    deployment.run_workers()
    if "inputRequests" in deployment.get(task_id)["result"]:
        deployment.update(task_id, keep=accepted("s3cret-answer"))
        deployment.run_workers()
    done = deployment.get(task_id)["result"]
    assert done["result"]["content"][0]["text"] == "s3cret-step s3cret-answer"
    assert ran == ["s3cret-step", "s3cret-step s3cret-answer"], "no step ran twice"


# -- client requests while the table fails


def test_requests_without_a_table_do_not_report_missing_tasks(
    deployment: TaskDeployment, wire: Any, table_error: Any
) -> None:
    wire.failing = table_error
    assert_unavailable(deployment.call("provision", arguments={"name": "db"}), deployment, table_error)
    assert not deployment.table.dispatcher.sent
    wire.failing = {}
    assert_completes(deployment, deployment.start("provision", name="db"))


@pytest.mark.parametrize("written", range(2))
def test_a_partially_written_task_does_not_exist(written: int) -> None:
    deployment = TaskDeployment(server)
    taken: list[str] = []

    class FailingStore:
        def get(self, pk: str, sk: str) -> None:
            """No parked call."""

        def put_new(self, item: Any) -> None:
            if len(taken) == written:
                raise StoreError("ThrottlingException")
            taken.append(item["sk"])

    breaking: Any = FailingStore()
    refused = deployment.post("tools/call", name="provision", arguments={"name": "db"}, store=breaking)
    assert refused["error"]["code"] == -32603
    assert not deployment.table.dispatcher.sent
    assert len(taken) == written
    assert TASK not in taken, "the task item is written last"


def test_a_poll_that_cannot_read_the_table_does_not_lose_the_task(
    deployment: TaskDeployment, wire: Any
) -> None:
    task_id = parked(deployment)
    for name in ("missing", "throttled", "overloaded"):
        wire.failing = TABLE_ERRORS[name]
        assert_unavailable(deployment.get(task_id), deployment, TABLE_ERRORS[name])
    wire.failing = {}
    assert_completes(deployment, task_id)


def test_a_poll_writes_only_if_a_worker_must_be_dispatched(deployment: TaskDeployment, wire: Any) -> None:
    task_id = deployment.start("provision", name="db")
    wire.failing = TABLE_ERRORS["read-only"]
    assert deployment.status(task_id) == "working"
    wire.failing = {}
    deployment.run_workers()
    wire.failing = TABLE_ERRORS["read-only"]
    assert deployment.status(task_id) == "input_required"


def test_an_answer_that_cannot_be_written_is_not_acknowledged(
    deployment: TaskDeployment, wire: Any, table_error: Any
) -> None:
    task_id = parked(deployment)
    wire.failing = table_error
    assert_unavailable(deployment.update(task_id, keep=accepted("s3cret-answer")), deployment, table_error)
    wire.failing = {}
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"keep"}
    assert_completes(deployment, task_id)


def test_an_answer_that_was_not_acknowledged_is_not_stored(deployment: TaskDeployment, wire: Any) -> None:
    task_id = parked(deployment)
    wire.failing = {"UpdateItem": THROTTLED}
    assert deployment.update(task_id, keep=accepted("another"))["error"]["code"] == -32603
    wire.failing = {}
    assert deployment.get(task_id)["result"]["inputRequests"].keys() == {"keep"}
    assert_completes(deployment, task_id)


def test_an_answer_that_loses_all_concurrent_updates_is_not_acknowledged() -> None:
    class OutpacedStore(MemoryStore):
        """A store whose updates always lose to concurrent ones."""

        def update(self, pk: str, sk: str, change: Any) -> Any:
            answers = "req" in change.set and "iss" not in change.set
            return None if answers else super().update(pk, sk, change)

    deployment = TaskDeployment(server, store=OutpacedStore())
    task_id = parked(deployment)
    assert deployment.update(task_id, keep=accepted("s3cret-answer"))["error"]["code"] == -32603
    assert deployment.status(task_id) == "input_required"


def test_a_cancellation_that_cannot_be_written_is_not_acknowledged(
    deployment: TaskDeployment, wire: Any, table_error: Any
) -> None:
    task_id = parked(deployment)
    wire.failing = table_error
    assert_unavailable(deployment.cancel(task_id), deployment, table_error)
    wire.failing = {}
    assert_completes(deployment, task_id)


def test_reads_are_strongly_consistent(deployment: TaskDeployment, wire: Any) -> None:
    task_id = parked(deployment)
    deployment.update(task_id, keep=accepted("s3cret-answer"))
    assert_completes(deployment, task_id)
    read = [
        sent
        for sent, operation in zip(wire.requests, wire.operations, strict=True)
        if operation in ("GetItem", "Query")
    ]
    assert read
    assert all(sent["ConsistentRead"] is True for sent in read)


# -- workers while the table fails


def test_a_task_that_cannot_be_claimed_is_completed_by_the_next_delivery(
    deployment: TaskDeployment, wire: Any, table_error: Any
) -> None:
    task_id = deployment.start("provision", name="db")
    delivery = deployment.table.dispatcher.sent[0]
    wire.failing = table_error
    with pytest.raises(StoreError):
        deployment.run_worker()
    wire.failing = {}
    deployment.table.dispatcher.sent.append(delivery)
    assert_completes(deployment, task_id)


@pytest.mark.parametrize("refused", ["Query", "PutItem", "GetItem"])
def test_a_worker_that_cannot_write_its_journal_releases_its_lease(
    deployment: TaskDeployment, wire: Any, refused: str
) -> None:
    task_id = deployment.start("provision", name="db")
    delivery = deployment.table.dispatcher.sent[0]
    wire.failing = {refused: THROTTLED}
    with pytest.raises(StoreError):
        deployment.run_worker()
    wire.failing = {}
    ran.clear()  # a step that was not journaled runs again
    deployment.table.dispatcher.sent.append(delivery)
    assert_completes(deployment, task_id)


@pytest.mark.parametrize("refused", [("Query", "UpdateItem"), ("PutItem", "UpdateItem")])
def test_a_worker_that_cannot_release_its_lease_is_replaced_when_the_lease_expires(
    deployment: TaskDeployment, wire: Any, refused: tuple[str, ...]
) -> None:
    task_id = deployment.start("provision", name="db")
    pk = deployment.table.dispatcher.sent[0][1]

    class FailingAfterClaim:
        """A store that fails after the claim."""

        def update(self, *change: Any) -> Any:
            item = deployment.store.update(*change)
            wire.failing = dict.fromkeys(refused, OVERLOADED)
            return item

        def __getattr__(self, name: str) -> Any:
            return getattr(deployment.store, name)

    failing: Any = FailingAfterClaim()
    with pytest.raises(StoreError):
        deployment.run_worker(failing)
    wire.failing = {}
    held = deployment.store.get(pk, TASK)
    assert held is not None
    assert "lo" in held
    ran.clear()
    deployment.get(task_id)
    assert not deployment.table.dispatcher.sent, "while the lease lasts"
    deployment.clock.advance(1_000)
    deployment.get(task_id)
    assert len(deployment.table.dispatcher.sent) == 1
    assert_completes(deployment, task_id)


# -- logs


def test_the_log_names_the_aws_error_without_secrets(
    deployment: TaskDeployment, wire: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    observer: Any = LogObserver()
    deployment.observer = observer
    task_id = parked(deployment)
    for name, table_error in TABLE_ERRORS.items():
        wire.failing = table_error
        deployment.call("provision", arguments={"name": "s3cret-argument"})
        deployment.update(task_id, keep=accepted("s3cret-answer"))
        wire.failing = {}
        logged = capsys.readouterr().out
        assert table_error["UpdateItem"][1] in logged, name
        assert "task_table_unavailable" in logged
        assert not any(secret in logged for secret in SECRETS)
    assert_completes(deployment, task_id)
    assert not any(secret in capsys.readouterr().out for secret in SECRETS)


# -- oversized and unserializable values


def items_of(deployment: TaskDeployment, pk: str) -> tuple[Task, TaskHistory]:
    """Return the items of a task, as a worker reads them."""
    item = deployment.table.store.get(pk, TASK)
    assert item is not None
    task = Task.from_item(item)
    return task, TaskHistory.from_items(task, deployment.table.store.query(pk))


def test_arguments_that_exceed_an_item_start_no_task() -> None:
    deployment = TaskDeployment(server)
    response = deployment.call("provision", arguments={"name": "x" * 500_000})
    assert response.get("result", {}).get("resultType") != "task"
    assert not deployment.table.dispatcher.sent
    (_, failure) = deployment.observer.failures[-1]
    assert isinstance(failure, ItemTooLarge)
    assert failure.size > failure.limit


@pytest.mark.parametrize(
    "result", [float("nan"), object(), {1: object()}], ids=lambda result: type(result).__name__
)
def test_a_step_result_without_json_form_fails_the_tool_and_is_logged(result: Any) -> None:
    other = Server("other")

    @other.tool(task="required")
    def returns(ctx: Context) -> None:
        ctx.run_as_task()
        ctx.step("much", lambda: result)

    deployment = TaskDeployment(other)
    task_id = deployment.start("returns")
    deployment.run_workers()
    done = deployment.get(task_id)["result"]
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    event, failure = deployment.observer.failures[-1]
    assert event == "tool_raised"
    assert isinstance(failure, UsageError)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_arguments_without_json_form_start_no_task(number: str) -> None:
    deployment = TaskDeployment(server)
    request = deployment.body("tools/call", name="provision", arguments={"name": "@"})
    body = json.dumps(request).replace('"@"', number)
    refused = deployment.send(request, text=body)
    assert (refused.status, json.loads(refused.body)["error"]["code"]) == (400, -32700)
    assert not deployment.table.dispatcher.sent


def fail_in_next_build(deployment: TaskDeployment, changed: Server) -> tuple[dict[str, Any], TaskHistory]:
    """Park a task, answer it, run it on another build. Return its end and the items in the table."""
    task_id = deployment.start("provision", name="s3cret-argument")
    pk = deployment.table.dispatcher.sent[0][1]
    deployment.run_workers()
    later = deployment.next_deployment(changed)
    later.update(task_id, keep=accepted("s3cret-answer"))
    later.run_workers()
    return later.get(task_id)["result"], items_of(later, pk)[1]


def test_a_task_with_changed_code_fails_with_the_reason_and_keeps_its_journal() -> None:
    changed = Server("table_errors")

    @changed.tool(task="required")
    def provision(ctx: Context, name: str) -> str:
        ctx.run_as_task()
        return ctx.elicit("create", "Create?", str)

    deployment = TaskDeployment(server)
    failed, past = fail_in_next_build(deployment, changed)
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert "'create'" in failed["statusMessage"]
    event, failure = deployment.observer.failures[-1]
    assert event == "drift"
    assert isinstance(failure, Drift)
    assert {entry.key: entry.value for entry in past.journal.entries} == {"create": "s3cret-step"}
    assert past.responses == {"keep": accepted("s3cret-answer")}
    assert past.call.arguments == {"name": "s3cret-argument"}


def another(ctx: Context) -> None:
    ctx.run_as_task()


def test_a_task_whose_tool_was_removed_fails_and_keeps_its_journal() -> None:
    changed = Server("table_errors")
    changed.tool(task="required")(another)
    failed, past = fail_in_next_build(TaskDeployment(server), changed)
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert [entry.key for entry in past.journal.entries] == ["create"]


def test_a_task_whose_tool_has_new_arguments_ends_in_a_tool_error_and_keeps_its_journal() -> None:
    changed = Server("table_errors")

    @changed.tool(task="required")
    def provision(ctx: Context, title: str) -> str:
        raise AssertionError("never called")

    ended, past = fail_in_next_build(TaskDeployment(server), changed)
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)
    assert [entry.key for entry in past.journal.entries] == ["create"]


def working(body: Any) -> TaskDeployment:
    """Return a deployment with a tool `works` that runs `body` as a task."""
    other = Server("other")

    @other.tool(task="required")
    def works(ctx: Context) -> str:
        ctx.run_as_task()
        return body(ctx)

    return TaskDeployment(other)


class RefusesProgress(MemoryStore):
    def update(self, pk: str, sk: str, change: Any) -> Any:
        if change.set.keys() == {"msg", "uAt"}:
            raise StoreError("ThrottlingException")
        return super().update(pk, sk, change)


def test_a_progress_report_that_cannot_be_written_does_not_fail_the_task() -> None:
    deployment = working(lambda ctx: ctx.progress(1, 2, "half") or "done")
    deployment.table.store = RefusesProgress()
    task_id = deployment.start("works")
    deployment.run_workers()
    assert deployment.get(task_id)["result"]["result"]["isError"] is False
    assert [event for event, _ in deployment.observer.failures] == ["progress_write_failed"]


def test_a_progress_report_is_truncated() -> None:
    deployment = working(lambda ctx: ctx.progress(1, 2, "x" * 500_000) or str(ctx.sleep("a while", 60_000)))
    task_id = deployment.start("works")
    deployment.run_workers()
    sleeping = deployment.get(task_id)["result"]
    assert (sleeping["status"], len(sleeping["statusMessage"])) == ("working", 4_096)


def test_a_result_over_the_response_limit_is_a_tool_error_as_without_a_task() -> None:
    deployment = working(lambda ctx: "x" * 7_000_000)
    task_id = deployment.start("works")
    deployment.run_workers()
    done = deployment.get(task_id)["result"]
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert [event for event, _ in deployment.observer.failures] == ["result_too_large"]


def test_arguments_too_large_for_a_task_are_a_tool_error_for_the_model() -> None:
    response = TaskDeployment(server).call("provision", arguments={"name": "x" * 500_000})
    assert response["result"]["isError"] is True


@pytest.mark.parametrize("duration_ms", [500.0, 0.5])
def test_a_sleep_may_have_a_fractional_duration(duration_ms: Any) -> None:
    deployment = working(lambda ctx: ctx.sleep("nap", duration_ms) or "done")
    task_id = deployment.start("works")
    deployment.run_workers()
    deployment.clock.advance(1)
    deployment.get(task_id)
    deployment.run_workers()
    assert deployment.status(task_id) == "completed"


def test_a_failing_worker_is_logged(deployment: TaskDeployment, wire: Any) -> None:
    deployment.start("provision", name="db")
    wire.failing = TABLE_ERRORS["throttled"]
    with pytest.raises(StoreError):
        deployment.run_worker()
    event, failure = deployment.observer.failures[-1]
    assert event == "worker_failed"
    assert isinstance(failure, StoreError)
