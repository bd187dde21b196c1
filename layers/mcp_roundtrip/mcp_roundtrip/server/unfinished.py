"""What becomes of a call that needs another round and cannot have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.engine.journal import Journal
from mcp_roundtrip.engine.outcome import Checkpointed, NeedsInput
from mcp_roundtrip.engine.url_polling import TASK_TTL_MS
from mcp_roundtrip.errors import StateRejected, ToolError
from mcp_roundtrip.internal_errors import CallAborted, StateTooLarge
from mcp_roundtrip.server.round import Call, Reply, internal_error

ASKED_BY_TASKS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})
"""The requests that a task may have outstanding: namespaced ones are not among them."""

Requests = Mapping[str, Mapping[str, Any]]


def out_of_rounds(call: Call, outcome: NeedsInput | Checkpointed, rounds: int) -> Reply:
    """Carry on as a task where that is possible; otherwise end with an error that the model can read."""
    requests = outcome.requests if isinstance(outcome, NeedsInput) else {}
    if call.may_start_task() and all(each["method"] in ASKED_BY_TASKS for each in requests.values()):
        return call.become_task(outcome.journal, TASK_TTL_MS)
    text = f"The call was given up: it is not finished after {rounds} rounds."
    return _ended(call, requests, text, "too_many_rounds")


def not_sealed(
    call: Call, error: StateRejected | StateTooLarge, requests: Requests, journal: Journal
) -> Reply:
    """End a call whose flow was over when the tool had run, or whose state is too large."""
    if isinstance(error, StateTooLarge):
        return _too_large(call, error, journal)
    text = f"The call took too long for another round. Call the {call.feature.kind} again."
    return _ended(call, requests, text, "flow_expired")


def _ended(call: Call, requests: Requests, text: str, outcome: str) -> Reply:
    urls = [params["url"] for each in requests.values() if (params := each["params"]).get("mode") == "url"]
    pages = [url.partition("#")[0].partition("?")[0] for url in urls]  # models need no token of a link
    if pages:
        text += (
            f" It waits for the user, who has not finished at {' and at '.join(pages)}. Once that is done, "
            f"call the {call.feature.kind} again with the same arguments: it continues from there."
        )
    return call.told(CallAborted(text), outcome)


def _too_large(call: Call, error: StateTooLarge, journal: Journal) -> Reply:
    """The author's business if it is the steps' results, the client's if it is its own answers."""
    steps = {entry.key: len(compact_json(entry.value)) for entry in journal.entries if entry.kind.is_effect}
    if sum(steps.values()) > error.size // 4:
        largest = max(steps, key=lambda key: steps[key])
        call.ports.observer.failure("state_too_large", error, **call.named, largest_step=largest)
        raise internal_error(call.invocation.correlation_id)
    text = f"The answers are too large for another round: about {error.limit // 2} characters in all."
    return call.told(ToolError(text), "answers_too_large")
