"""The methods of the tasks extension: `tasks/get`, `tasks/update` and `tasks/cancel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from mcp_roundtrip.auth.principal import caller_binding
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError
from mcp_roundtrip.internal_errors import ItemTooLarge, StoreError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import TASKS
from mcp_roundtrip.protocol.constants import TASKS_CANCEL, TASKS_GET, TASKS_UPDATE
from mcp_roundtrip.protocol.input_responses import MalformedInputResponse
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.model import Handler, Reply, RequestContext
from mcp_roundtrip.server.task_objects import detailed_task_members
from mcp_roundtrip.tasks.service import Tasks, UnknownTask

T = TypeVar("T")

TaskOperation = Callable[[Tasks, str | None, str], T]
"""Takes the tasks, the caller's binding and a task id.

Raises UnknownTask, MalformedInputResponse, ItemTooLarge or StoreError.
"""


class TaskMethods(Struct, frozen=True):
    """The handlers of the extension's methods, for the tasks of all tools that share a table."""

    server_info: Mapping[str, Any]

    def handlers(self) -> dict[str, Handler]:
        """Return the handler of each method."""
        return {TASKS_GET: self._get, TASKS_UPDATE: self._update, TASKS_CANCEL: self._cancel}

    def _get(self, context: RequestContext) -> Reply:
        task = _run_extension_operation(context, Tasks.get)
        members = detailed_task_members(task, context.ports.config.audience)
        result = results.complete(self.server_info, **members)
        return Reply(result, log_fields={"task": task.task_id})

    def _update(self, context: RequestContext) -> Reply:
        responses = context.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
        _run_extension_operation(
            context, lambda tasks, caller, task_id: tasks.update(caller, task_id, responses)
        )
        return Reply(results.complete(self.server_info))

    def _cancel(self, context: RequestContext) -> Reply:
        _run_extension_operation(context, Tasks.cancel)
        return Reply(results.complete(self.server_info))


def _run_extension_operation(context: RequestContext, operation: TaskOperation[T]) -> T:
    require_capabilities(context, [TASKS])
    return run_task_operation(context, context.params.get("taskId"), operation)


def run_task_operation(context: RequestContext, task_id: Any, operation: TaskOperation[T]) -> T:
    """Apply the operation to the caller's task of this id. Raises ProtocolError."""
    if not isinstance(task_id, str):
        raise ProtocolError(INVALID_PARAMS, "Invalid params: taskId must be a string")
    try:
        return operation(context.ports.tasks().tasks, caller_binding(context.principal), task_id)
    except UnknownTask:
        raise ProtocolError(INVALID_PARAMS, "Unknown task") from None
    except MalformedInputResponse as error:
        context.ports.observer.record("answer_refused", task=task_id, key=error.key, reason=error.reason)
        raise
    except ItemTooLarge as error:
        text = f"Invalid params: an answer is too large to be kept, at most about {error.limit} bytes"
        raise ProtocolError(INVALID_PARAMS, text) from None
    except StoreError as error:
        raise context.table_unavailable(error) from error
