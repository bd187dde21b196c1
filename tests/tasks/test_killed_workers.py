"""Worker processes killed by SIGKILL before and after every call of the store, while clients poll."""

import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from msgspec.structs import replace

from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.tasks.items import TaskHistory
from mcp_roundtrip.tasks.model import Status
from mcp_roundtrip.tasks.service import Tasks
from mcp_roundtrip.tasks.store import MemoryStore
from mcp_roundtrip_testing.task_table import RecordingDispatcher
from support import worker_process
from support.dynamodb_clients import client, new_table
from support.worker_process import (
    ANSWER,
    DELIVERY,
    SIDES,
    TIMEOUT_S,
    KillingStore,
    clock_of,
    create,
    id_of,
    lines,
    make_worker,
    now_ms,
)

pytest_plugins = ["support.ministack"]

ROUNDS = 2
"""Each round has two tasks per call: killed before it and after it."""
AT_ONCE = 32
POLL_S = 0.25
END_TIMEOUT_S = 300


def numbered(tasks, number, record):
    """Return tasks with their own clock and with the number as the id of the next task."""
    return replace(tasks, random_bytes=lambda size: number.to_bytes(size, "big"), clock_ms=clock_of(record))


def answer(tasks, task):
    tasks.update(None, task.task_id, dict.fromkeys(task.requests, ANSWER))


def calls_of_a_run(record):
    """Return the ordered calls of a run without a killed worker."""
    store, dispatcher = MemoryStore(), RecordingDispatcher()
    tasks = Tasks(store, dispatcher, now_ms)
    task = create(tasks, record)
    while dispatcher.sent:
        make_worker(KillingStore(store, record)).work(dispatcher.sent.popleft()[1], DELIVERY)
        answer(tasks, tasks.get(None, task.task_id))
    return [words[1] for words in lines(record) if words[0] == "call"]


@dataclass(frozen=True)
class Pool:
    """A dispatcher that calls the process that forks the workers."""

    process: subprocess.Popen
    lock: threading.Lock

    def dispatch(self, worker, pk):
        with self.lock:
            print(pk, file=self.process.stdin, flush=True)


def follow(tasks, task_id):
    """Poll and answer as a client does until the task has ended, and return it."""
    deadline, never = time.monotonic() + END_TIMEOUT_S, threading.Event()
    while time.monotonic() < deadline:
        task = tasks.get(None, task_id)
        if task.is_terminal:
            return task
        if task.requests:
            answer(tasks, task)
        never.wait(POLL_S)
    raise AssertionError(f"task {task_id} has not ended: {task}")


@dataclass(frozen=True)
class Outcome:
    """The end of a task: what two clients saw, its log of steps, and its journal."""

    number: int
    seen: list
    record: list
    journal: dict

    @property
    def killed(self):
        return [(side, name) for event, side, name in (w for w in self.record if w[0] == "killed")]

    def ran(self, step):
        return [words[2] for words in self.record if words[:2] == ["ran", step]]


@dataclass(frozen=True)
class Experiment:
    calls: list
    outcomes: list
    errors: str


@pytest.fixture(scope="module")
def experiment(ministack, tmp_path_factory):
    """Run tasks that lose one worker each."""
    folder = tmp_path_factory.mktemp("records")
    calls = calls_of_a_run(folder / "undisturbed")
    with ExitStack() as stack:
        dynamodb = client(ministack, attempts=3, connections=3 * AT_ONCE, timeout_s=TIMEOUT_S)
        stack.callback(dynamodb.close)
        table = new_table(dynamodb)
        errors = stack.enter_context((folder / "errors").open("wb"))
        script = Path(worker_process.__file__)
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, script, ministack, table, folder, str(len(calls))],
                stdin=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={"PYTHONPATH": str(script.parent.parent)},
            )
        )
        stack.callback(process.stdin.close)
        store = DynamoStore(dynamodb, table)
        tasks = Tasks(store, Pool(process, threading.Lock()), now_ms)

        def live(number):
            record = folder / str(number)
            own = numbered(tasks, number, record)
            task = create(own, record)
            with ThreadPoolExecutor(2) as clients:
                seen = list(clients.map(lambda _: follow(own, task.task_id), range(2)))
            past = TaskHistory.from_items(seen[0], store.query(task.pk))
            journal = {entry.key: entry.value for entry in past.journal.entries}
            return Outcome(number, seen, lines(record), journal)

        with ThreadPoolExecutor(AT_ONCE) as several:
            outcomes = list(several.map(live, range(ROUNDS * len(SIDES) * len(calls))))
    return Experiment(calls, outcomes, (folder / "errors").read_text())


def test_a_worker_was_killed_before_and_after_every_call(experiment):
    assert experiment.calls[:2] == ["update:M", "query"]
    journaled = {"put_new:J#first", "put_new:J#once~begun", "put_new_and_update:J#once:M", "put_new:J#last"}
    assert {*journaled, "get:M"} < set(experiment.calls)
    assert all(len(outcome.killed) == 1 for outcome in experiment.outcomes)
    killed = {(o.number // 2 % len(experiment.calls), *o.killed[0]) for o in experiment.outcomes}
    assert killed >= {(place, side, call) for place, call in enumerate(experiment.calls) for side in SIDES}


def test_workers_report_no_error(experiment):
    assert experiment.errors == ""


def test_every_task_completes_and_both_clients_see_the_same_result(experiment):
    assert [outcome.seen[0].task_id for outcome in experiment.outcomes] == [
        id_of(outcome.number) for outcome in experiment.outcomes
    ]
    for outcome in experiment.outcomes:
        one, other = outcome.seen
        assert one == other
        assert one.status is Status.COMPLETED


def test_results_and_journals_match_the_steps_that_ran(experiment):
    for outcome in experiment.outcomes:
        returned = outcome.seen[0].result["structuredContent"]
        assert returned["first"] == outcome.journal["first"]
        assert returned["last"] == outcome.journal["last"]
        assert returned["once"] == outcome.journal.get("once", "interrupted")
        for step in ("first", "once", "last"):
            assert returned[step] in [*outcome.ran(step), "interrupted"]


def test_a_journaled_step_does_not_run_again(experiment):
    for outcome in experiment.outcomes:
        journaled = set()
        for event, name, *_ in outcome.record:
            if event == "done" and ":J#" in name:
                journaled.add(name.split(":")[1].removeprefix("J#"))
            assert event != "ran" or name not in journaled, outcome.record


@pytest.mark.parametrize("step", ["first", "last"])
def test_a_step_killed_before_it_was_journaled_runs_again(experiment, step):
    lost = [o for o in experiment.outcomes if o.killed == [("before", f"put_new:J#{step}")]]
    assert lost
    assert all(len(outcome.ran(step)) > 1 for outcome in lost)


def test_a_nonrepeatable_step_runs_at_most_once(experiment):
    runs = [len(outcome.ran("once")) for outcome in experiment.outcomes]
    assert set(runs) == {0, 1}, "a worker killed directly before the step leaves none"
    for outcome in experiment.outcomes:
        is_interrupted = outcome.seen[0].result["structuredContent"]["once"] == "interrupted"
        assert is_interrupted == (("once" not in outcome.journal) and "once~begun" in outcome.journal)
