"""Tasks with writes that fail: nothing that is stored is lost.

The corpus has a case for each operation of DynamoDB that fails, in a request, in a worker and for a parked
call, and cases of tasks whose code has changed.
"""

from unittest.mock import Mock

from msgspec import structs

from mcp_roundtrip import Context, Server
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.lost_workers import REDISPATCH_MS
from mcp_roundtrip.tasks.open_task_limit import Owner
from mcp_roundtrip_testing.task_table import MemoryStore
from support.client_requests import accepted
from support.deployment import Deployment
from support.faulty_store import FaultyStore
from support.stored_tasks import CALL, JOURNAL, TTL_MS, StoredTasks
from support.task_tools import run_step, task_server

server = Server("table_errors")


@server.tool(task="required")
def provision(ctx: Context, name: str) -> str:
    ctx.run_as_task()
    created = ctx.step("create", run_step, "s3cret-step")
    answer = ctx.elicit("keep", f"Keep {name}?", str)
    return ctx.step("activate", run_step, f"{created} {answer}")


def parked(deployment):
    task_id = deployment.run_task("provision", name="s3cret-argument")
    assert deployment.status(task_id) == "input_required"
    return task_id


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


def test_a_task_whose_worker_cannot_be_invoked_is_created_and_a_poll_invokes_it():
    table, failed = StoredTasks(), []
    throttled = Mock(dispatch=Mock(side_effect=StoreError("ThrottlingException")))
    tasks = structs.replace(
        table.tasks, dispatcher=throttled, on_dispatch_failed=lambda task, error: failed.append(task)
    )
    owner = Owner("alice", None, "flow")
    task = tasks.create(CALL, owner, JOURNAL, worker="worker:1", capabilities={}, ttl_ms=TTL_MS)
    assert failed == [task]
    for asked in (tasks, table.tasks):
        table.clock.advance(2 * REDISPATCH_MS / 1000 + 1)
        assert asked.get("alice", task.task_id).pk == task.pk
    assert [*table.table.dispatcher.sent] == [("worker:1", task.pk)]


def test_a_progress_report_that_cannot_be_written_does_not_fail_the_task():
    store = FaultyStore(matches=lambda operation: operation.sets == {"msg", "uAt"})
    deployment = Deployment(task_server(lambda ctx: ctx.progress(1, 2, "half") or "done"), store=store)
    assert deployment.text_of(deployment.run_task("works")) == "done"
    assert deployment.failures == ["progress_write_failed"]
