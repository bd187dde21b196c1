"""Create the tasks of a deployment. Requests without tasks do not import this module."""

from __future__ import annotations

import time

from mcp_roundtrip.aws.client_interface import ClientFactory
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.aws.lambda_and_sqs import AwsDispatcher
from mcp_roundtrip.deployment.ports import Observer
from mcp_roundtrip.deployment.settings import Settings
from mcp_roundtrip.tasks.service import Tasks


def make_tasks(settings: Settings, observer: Observer, clients: ClientFactory) -> Tasks:
    return Tasks(
        DynamoStore(clients.client("dynamodb"), settings.required("task_table")),
        AwsDispatcher(clients, _clock_ms, settings.task_queue),
        clock_ms=_clock_ms,
        on_abandoned=lambda task_id: observer.record("task_abandoned", task=task_id),
        on_dispatch_failed=lambda task_id, error: observer.record_failure(
            "dispatch_failed", error, task=task_id
        ),
        max_open=settings.max_open_tasks,
    )


def _clock_ms() -> int:
    return int(time.time() * 1000)
