"""Create the tasks of a deployment. Requests without tasks do not import this module."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from mcp_roundtrip.aws.client_interface import ClientFactory
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.aws.lambda_and_sqs import AwsDispatcher
from mcp_roundtrip.deployment.ports import Observer
from mcp_roundtrip.deployment.settings import Settings
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.call_and_journal_items import read_call
from mcp_roundtrip.tasks.model import Task
from mcp_roundtrip.tasks.service import Tasks


def make_tasks(settings: Settings, observer: Observer, clients: ClientFactory) -> Tasks:
    store = DynamoStore(clients.client("dynamodb"), settings.required("task_table"))

    def identity(task: Task) -> dict[str, Any]:
        call = None
        with suppress(StoreError):
            call = read_call(store, task.pk)
        return {"task": task.task_id, "tool": None if call is None else call.name}

    return Tasks(
        store,
        AwsDispatcher(clients, _clock_ms, settings.task_queue),
        clock_ms=_clock_ms,
        on_abandoned=lambda task: observer.record("task_abandoned", **identity(task)),
        on_dispatch_failed=lambda task, error: observer.record_failure(
            "dispatch_failed", error, **identity(task)
        ),
        max_open=settings.max_open_tasks,
    )


def _clock_ms() -> int:
    return int(time.time() * 1000)
