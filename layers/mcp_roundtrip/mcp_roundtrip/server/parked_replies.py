"""The replies of parked calls: the questions, where the call stands, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from mcp_roundtrip.engine.inputs import own_message
from mcp_roundtrip.errors import ProtocolError, ToolError
from mcp_roundtrip.internal_errors import CallAborted
from mcp_roundtrip.protocol import results
from mcp_roundtrip.server.model import Reply
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.question_links import question_page_url

PARKED: Final = "parked"
"""The member of a view's state that names the task of a parked call."""

META_PARKED_CALL: Final = "mcp-roundtrip/parkedCall"
"""The member of a result's `_meta` that tells programs that the call is not finished. It holds the `status`,
"input_required" or "working" as of a task, and the `url` at which the user answers, if there is one."""

VIEW_PAUSE_MS: Final = 2_000
"""How long a view waits before it asks again where a call stands."""


def ask(this_round: Round, task: Task, *, is_repeated: bool = False) -> Reply:
    """Build the reply with the open questions of a call. `is_repeated`: an earlier reply had them."""
    call, requests = this_round.call, {key: asked.request for key, asked in task.requests.items()}
    channel = next(asked.channel for asked in task.requests.values())
    if channel == "model":
        from mcp_roundtrip.server.model_questions import model_prompt  # few tools choose it

        text = model_prompt(call.name, {key: request["params"] for key, request in requests.items()})
        return _unfinished(this_round, text, "asked_through_model", _ASKING, asked=sorted(requests))
    url = question_page_url(call.context.ports.config.audience(), task.link or "")
    if channel == "app":
        from mcp_roundtrip.server.app_questions import show  # most clients show no views

        shown = show(this_round, requests, {PARKED: task.task_id}, link=url)
        return _with_status(shown, {**_ASKING, "url": url})
    text = _page_text(call.name, requests, url)
    outcome = "waiting_for_answer" if is_repeated else "asked_on_page"
    return _unfinished(this_round, text, outcome, {**_ASKING, "url": url}, asked=sorted(requests))


def wait(this_round: Round, task: Task, *, waits_for_url: bool = False) -> Reply:
    """Build the reply of a call that asks nothing now, and needs another call to continue."""
    tool, is_leased = this_round.call.name, task.lease_owner is not None
    if this_round.call.params.is_in_app:
        return _working(this_round, waits_for_url=waits_for_url)
    again = f"Call {tool} again with the same arguments"
    if waits_for_url:
        text = f"{tool} waits for the user, who has not finished at the page. {again} when they have."
        return _unfinished(this_round, text, "waiting_for_answer", _ASKING)
    if is_leased:
        text = f"{tool} is still running. {again} to get its result."
        return _unfinished(this_round, text, "still_running", _WORKING)
    text = f"This is not finished: {tool} needs more time. {again}: it continues where it stopped."
    return _unfinished(this_round, text, "parked", _WORKING)


def _working(this_round: Round, *, waits_for_url: bool) -> Reply:
    """Build the reply to a view, which asks again by itself."""
    from mcp_roundtrip.server.app_questions import working_result  # most clients show no views

    call = this_round.call
    text = "Waiting until you have finished at the link." if waits_for_url else f"{call.name} is working."
    body = working_result(call, text, VIEW_PAUSE_MS)
    return this_round.reply(body, "waiting_for_answer" if waits_for_url else "still_running")


def result(this_round: Round, task: Task) -> Reply:
    """Build the reply with the stored result of a call that has ended. It has its large results, too."""
    if task.error is not None:
        error = ProtocolError(task.error["code"], task.error["message"], task.error.get("data"))
        return this_round.reply(error, None)
    return this_round.reply(task.result, "result_repeated")


def ended(this_round: Round) -> Reply:
    """Build the reply to an answer for a call that no longer exists."""
    text = f"This call of {this_round.call.name} has ended or expired. A new call starts from the beginning."
    return this_round.error_reply(CallAborted(text), "call_ended")


def late(this_round: Round) -> Reply:
    """Build the reply to a form whose questions have other answers already."""
    text = (
        "These questions were answered before, perhaps in another window, and the call continues with those "
        f"answers. What was sent now was not stored. Call {this_round.call.name} again with the same "
        "arguments: that call returns the result."
    )
    return this_round.error_reply(CallAborted(text), "answers_late")


def too_large(this_round: Round, limit: int) -> Reply:
    """Build the reply to an answer that no item of the table can hold."""
    text = f"The answer is too large: at most about {limit} bytes of JSON. Give a shorter one."
    return this_round.error_reply(ToolError(text), "answers_too_large")


def _page_text(tool: str, requests: Mapping[str, Mapping[str, Any]], url: str) -> str:
    messages = "".join(f"\n- {own_message(request)}" for request in requests.values())
    return (
        f"This is not finished: {tool} asks the user, who answers on this page:\n{url}\n"
        f"What it asks:{messages}\n"
        "Show the link to the user. Do not open it yourself, and do not answer in place of the user. "
        f"When the user says that they are done, call {tool} again with the same arguments: that call "
        "continues, and returns the result."
    )


_ASKING: Final[Mapping[str, Any]] = {"status": Status.INPUT_REQUIRED.value}
_WORKING: Final[Mapping[str, Any]] = {"status": Status.WORKING.value}


def _unfinished(
    this_round: Round, text: str, outcome: str, status: Mapping[str, Any], **fields: Any
) -> Reply:
    """Build the reply of a call that another call continues: a text for models, a status for programs."""
    body = results.tool_result(this_round.call.server_info, [results.text_content(text)], {})
    return _with_status(this_round.reply(body, outcome, **fields), status)


def _with_status(reply: Reply, status: Mapping[str, Any]) -> Reply:
    body = reply.body
    if isinstance(body, ProtocolError):
        return reply
    return replace(reply, body={**body, "_meta": {**body["_meta"], META_PARKED_CALL: status}})
