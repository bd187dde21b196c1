"""Tasks while DynamoDB fails, and tasks with values that cannot be stored: no task is lost."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.errors import Drift
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from mcp_roundtrip.tasks.model import TASK
from mcp_roundtrip.tasks.related_items import TaskHistory
from mcp_roundtrip_testing.task_table import CrashingStore, MemoryStore
from support.client_requests import accepted
from support.deployment import Deployment
from support.dynamodb_clients import Wire, behind, new_table
from support.faulty_store import FaultyStore, refuse
from support.task_tools import ran, run_step, task_server

pytest_plugins = ["support.ministack"]

THROTTLED = (400, "ThrottlingException")
OVERLOADED = (400, "ProvisionedThroughputExceededException")


WRITES = ("PutItem", "UpdateItem")


ALL = (*WRITES, "GetItem", "Query")

TABLE_ERRORS: Mapping[str, Mapping[str, tuple[int, str]]] = {
    "missing": dict.fromkeys(ALL, (400, "ResourceNotFoundException")),
    "throttled": dict.fromkeys(ALL, THROTTLED),
    "overloaded": dict.fromkeys(ALL, OVERLOADED),
    "read-only": dict.fromkeys(WRITES, (400, "AccessDeniedException")),
}
each_table_error = pytest.mark.parametrize("table_error", TABLE_ERRORS.values(), ids=list(TABLE_ERRORS))

SECRETS = ("s3cret-argument", "s3cret-answer", "s3cret-step")

server = Server("table_errors")


@server.tool(task="required")
def provision(ctx: Context, name: str) -> str:
    ctx.run_as_task()
    created = ctx.step("create", run_step, "s3cret-step")
    answer = ctx.elicit("keep", f"Keep {name}?", str)
    return ctx.step("activate", run_step, f"{created} {answer}")


@dataclass
class FailingWire(Wire):
    """A wire that refuses the operations in `failing`, each with its error."""

    failing: Mapping[str, tuple[int, str]] = field(default_factory=dict)

    def __call__(self, request):
        operation = (request.header("x-amz-target") or "").partition(".")[2]
        if operation in self.failing:
            self.refuse = [self.failing[operation]]
        return super().__call__(request)

    @contextmanager
    def failing_with(self, errors: Mapping[str, tuple[int, str]]) -> Iterator[None]:
        """Refuse operations in this block."""
        self.failing = errors
        yield
        self.failing = {}


@pytest.fixture
def wire(ministack):
    return FailingWire(ministack)


@pytest.fixture
def deployment(wire, ministack_dynamodb):
    table = new_table(ministack_dynamodb)
    with behind(wire) as dynamodb:
        yield Deployment(server, store=DynamoStore(dynamodb, table))


def parked(deployment):
    task_id = deployment.run_task("provision", name="s3cret-argument")
    assert deployment.status(task_id) == "input_required"
    return task_id


def assert_unavailable(response, deployment, table_error):
    """Check that the client gets no more than the correlation id, and that the log has the AWS error."""
    error = response["error"]
    assert (error.keys(), error["code"]) == ({"code", "message"}, -32603)
    assert re.fullmatch(r"Internal error\. Quote request-\d+ to the server's operator\.", error["message"])
    event, failure = deployment.observer.failures[-1]
    assert event == "task_table_unavailable"
    assert isinstance(failure, StoreError)
    assert failure.reason == table_error["UpdateItem"][1]


def assert_completes(deployment, task_id):
    deployment.run_workers()
    if "inputRequests" in deployment.poll(task_id):
        deployment.resume(task_id, keep="s3cret-answer")
    assert deployment.text_of(task_id) == "s3cret-step s3cret-answer"
    assert ran == ["s3cret-step", "s3cret-step s3cret-answer"], "no step ran twice"


@each_table_error
def test_requests_without_a_table_do_not_report_missing_tasks(deployment, wire, table_error):
    with wire.failing_with(table_error):
        assert_unavailable(deployment.post_call("provision", {"name": "db"}), deployment, table_error)
    assert not deployment.sent
    assert_completes(deployment, deployment.start("provision", name="db"))


@pytest.mark.parametrize("written", range(2))
def test_a_partially_written_task_does_not_exist(written):
    taken = []

    def take(operation):
        if len(taken) == written:
            refuse()
        taken.append(operation.keys[0][1])

    store = FaultyStore(matches=lambda operation: operation.name == "put_new", before=take)
    deployment = Deployment(server, store=store)
    assert deployment.call_error("provision", name="db")["code"] == -32603
    assert not deployment.sent
    assert len(taken) == written
    assert TASK not in taken, "the task item is written last"


def test_a_poll_that_cannot_read_the_table_does_not_lose_the_task(deployment, wire):
    task_id = parked(deployment)
    for name in ("missing", "throttled", "overloaded"):
        with wire.failing_with(TABLE_ERRORS[name]):
            assert_unavailable(deployment.post("tasks/get", taskId=task_id), deployment, TABLE_ERRORS[name])
    assert_completes(deployment, task_id)


def test_a_poll_writes_only_if_a_worker_must_be_dispatched(deployment, wire):
    task_id = deployment.start("provision", name="db")
    with wire.failing_with(TABLE_ERRORS["read-only"]):
        assert deployment.status(task_id) == "working"
    deployment.run_workers()
    with wire.failing_with(TABLE_ERRORS["read-only"]):
        assert deployment.status(task_id) == "input_required"


@pytest.mark.parametrize("table_error", [*TABLE_ERRORS.values(), {"UpdateItem": THROTTLED}])
def test_an_answer_that_cannot_be_written_is_not_acknowledged_or_stored(deployment, wire, table_error):
    task_id = parked(deployment)
    with wire.failing_with(table_error):
        answer = deployment.update(task_id, keep=accepted("another"))
        assert_unavailable(answer, deployment, table_error)
    assert deployment.poll(task_id)["inputRequests"].keys() == {"keep"}
    assert_completes(deployment, task_id)


def test_an_answer_that_loses_all_concurrent_updates_is_not_acknowledged():
    class OutpacedStore(MemoryStore):
        """A store whose updates always lose to concurrent ones."""

        def update(self, pk, sk, change):
            answers = "req" in change.set and "iss" not in change.set
            return None if answers else super().update(pk, sk, change)

    deployment = Deployment(server, store=OutpacedStore())
    task_id = parked(deployment)
    assert deployment.update(task_id, keep=accepted("s3cret-answer"))["error"]["code"] == -32603
    assert deployment.status(task_id) == "input_required"


@each_table_error
def test_a_cancellation_that_cannot_be_written_is_not_acknowledged(deployment, wire, table_error):
    task_id = parked(deployment)
    with wire.failing_with(table_error):
        assert_unavailable(deployment.cancel(task_id), deployment, table_error)
    assert_completes(deployment, task_id)


def fail_worker(deployment, wire, errors):
    """Run a worker while the table fails. Lambda will invoke it again."""
    delivery = deployment.sent[0]
    with wire.failing_with(errors), pytest.raises(StoreError):
        deployment.run_worker()
    deployment.sent.append(delivery)
    assert deployment.failures[-1] == "worker_failed"


@each_table_error
def test_a_task_that_cannot_be_claimed_is_completed_by_the_next_delivery(deployment, wire, table_error):
    task_id = deployment.start("provision", name="db")
    fail_worker(deployment, wire, table_error)
    assert_completes(deployment, task_id)


@pytest.mark.parametrize("refused", ["Query", "PutItem", "GetItem"])
def test_a_worker_that_cannot_write_its_journal_releases_its_lease(deployment, wire, refused):
    task_id = deployment.start("provision", name="db")
    fail_worker(deployment, wire, {refused: THROTTLED})
    ran.clear()  # a step that was not journaled runs again
    assert_completes(deployment, task_id)


@pytest.mark.parametrize("refused", [("Query", "UpdateItem"), ("PutItem", "UpdateItem")])
def test_a_worker_that_cannot_release_its_lease_is_replaced_when_the_lease_expires(deployment, wire, refused):
    task_id = deployment.start("provision", name="db")

    def fail():
        wire.failing = dict.fromkeys(refused, OVERLOADED)

    claims = CrashingStore(deployment.store, 0, is_done=True, on_reached=fail)
    with pytest.raises(StoreError):
        deployment.by(store=claims).run_worker()
    wire.failing = {}
    assert deployment.task(task_id).lease_owner is not None
    ran.clear()
    deployment.poll(task_id)
    assert not deployment.sent, "while the lease lasts"
    deployment.clock.advance(1_000)
    deployment.poll(task_id)
    assert len(deployment.sent) == 1
    assert_completes(deployment, task_id)


def test_the_log_names_the_aws_error_without_secrets(deployment, wire, capsys):
    deployment = deployment.by(observer=LogObserver())
    task_id = parked(deployment)
    for name, table_error in TABLE_ERRORS.items():
        with wire.failing_with(table_error):
            deployment.post_call("provision", {"name": "s3cret-argument"})
            deployment.update(task_id, keep=accepted("s3cret-answer"))
        logged = capsys.readouterr().out
        assert table_error["UpdateItem"][1] in logged, name
        assert "task_table_unavailable" in logged
        assert not any(secret in logged for secret in SECRETS)
    assert_completes(deployment, task_id)
    assert not any(secret in capsys.readouterr().out for secret in SECRETS)


def task_tool(function):
    """Return a server with one tool for tasks."""
    server = Server("table_errors")
    server.tool(task="required")(function)
    return server


def end_in_next_build(deployment, changed):
    """Park a task, answer it, run it on another build. Return its end and the items in the table."""
    task_id = parked(deployment)
    later = deployment.by(server=changed)
    later.resume(task_id, keep="s3cret-answer")
    task = later.task(task_id)
    return later.poll(task_id), TaskHistory.from_items(task, later.store.query(task.pk))


def test_a_task_with_changed_code_fails_with_the_reason_and_keeps_its_journal():
    def provision(ctx: Context, name: str) -> str:
        ctx.run_as_task()
        return ctx.elicit("create", "Create?", str)

    deployment = Deployment(server)
    failed, past = end_in_next_build(deployment, task_tool(provision))
    assert (failed["status"], failed["error"]["code"]) == ("failed", -32603)
    assert "'create'" in failed["statusMessage"]
    event, failure = deployment.observer.failures[-1]
    assert event == "drift"
    assert isinstance(failure, Drift)
    assert {entry.key: entry.value for entry in past.journal.entries} == {"create": "s3cret-step"}
    assert past.responses == {"keep": accepted("s3cret-answer")}
    assert past.call.arguments == {"name": "s3cret-argument"}


def test_a_task_whose_tool_has_new_arguments_ends_in_a_tool_error_and_keeps_its_journal():
    def provision(ctx: Context, title: str) -> str:
        raise AssertionError("never called")

    ended, past = end_in_next_build(Deployment(server), task_tool(provision))
    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)
    assert [entry.key for entry in past.journal.entries] == ["create"]


def test_a_progress_report_that_cannot_be_written_does_not_fail_the_task():
    store = FaultyStore(matches=lambda operation: operation.sets == {"msg", "uAt"})
    deployment = Deployment(task_server(lambda ctx: ctx.progress(1, 2, "half") or "done"), store=store)
    assert deployment.text_of(deployment.run_task("works")) == "done"
    assert deployment.failures == ["progress_write_failed"]


def test_a_progress_report_is_truncated():
    server = task_server(lambda ctx: ctx.progress(1, 2, "x" * 500_000) or str(ctx.sleep("nap", 60_000)))
    deployment = Deployment(server)
    sleeping = deployment.poll(deployment.run_task("works"))
    assert (sleeping["status"], len(sleeping["statusMessage"])) == ("working", 4_096)


def test_a_result_over_the_response_limit_is_a_tool_error_as_without_a_task():
    deployment = Deployment(task_server(lambda ctx: "x" * 7_000_000))
    done = deployment.poll(deployment.run_task("works"))
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert deployment.failures == ["result_too_large"]


@pytest.mark.parametrize("duration_ms", [500.0, 0.5])
def test_a_sleep_may_have_a_fractional_duration(duration_ms):
    deployment = Deployment(task_server(lambda ctx: ctx.sleep("nap", duration_ms) or "done"))
    task_id = deployment.run_task("works")
    deployment.clock.advance(1)
    deployment.poll(task_id)
    deployment.run_workers()
    assert deployment.status(task_id) == "completed"
