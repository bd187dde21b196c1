"""The presenter "page": what the model reads of a parked call.

It shows the user a link to a form on the endpoint. It learns how the call continues, where it stands, and how
it ended.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mcp_roundtrip.engine.questions import own_message
from mcp_roundtrip.errors import ProtocolError, ToolError
from mcp_roundtrip.internal_errors import CallAborted
from mcp_roundtrip.server.errors import ClientError
from mcp_roundtrip.server.model import FeatureCall, Reply, WireInputRequests
from mcp_roundtrip.server.options import CONTINUATION_CODE
from mcp_roundtrip.server.round import META_PARKED_CALL, Round, asked_through
from mcp_roundtrip.tasks.model import Status, Task
from mcp_roundtrip.tasks.question_page_links import question_page_url


class Repetition(Struct, frozen=True):
    """The call that continues a parked call. A caller without an identity passes its code on.

    `link`: the page on which the user answers the open questions of the parked call, if it has any.
    """

    tool: str
    code: str | None
    link: str

    @classmethod
    def of(cls, call: FeatureCall, task: Task) -> Repetition:
        """Return the call with which this caller continues the parked call."""
        link = question_page_url(call.context.ports.config.audience(), task.link or "")
        return cls(call.name, task.task_id if call.context.principal is None else None, link)

    @property
    def text(self) -> str:
        """The words that follow "call"."""
        code = "" if self.code is None else f", and with {self.code_text}"
        return f"{self.tool} again with the same arguments{code}"

    @property
    def code_text(self) -> str:
        """The argument with the code."""
        return f'{CONTINUATION_CODE} "{self.code}"'

    def meta(self, status: Status, **members: Any) -> dict[str, Any]:
        """Return the `_meta` of a reply that is not the call's result."""
        added = {} if self.code is None else {"arguments": {CONTINUATION_CODE: self.code}}
        return {META_PARKED_CALL: {"status": status.value, **members, **added}}


def ask(
    this_round: Round, requests: WireInputRequests, again: Repetition, *, is_repeated: bool = False
) -> Reply:
    """Build the result that has the model show a link. `is_repeated`: an earlier result had it."""
    text = _text(requests, again)
    outcome = "waiting_for_answer" if is_repeated else "asked_on_page"
    meta = again.meta(Status.INPUT_REQUIRED, url=again.link)
    return this_round.unfinished_reply(text, outcome, meta, asked=asked_through("page", requests))


def _text(requests: WireInputRequests, again: Repetition) -> str:
    messages = "".join(f"\n- {own_message(request)}" for request in requests.values())
    return (
        f"This is not finished: {again.tool} asks the user, who answers on this page:\n{again.link}\n"
        f"What it asks:{messages}\n"
        "Show the link to the user. Do not open it yourself, and do not answer in place of the user. "
        f"When the user says that they are done, call {again.text}: that call continues, and returns the "
        "result."
    )


def wait(this_round: Round, task: Task, *, waits_for_url: bool = False) -> Reply:
    """Build the reply of a call that asks nothing now, and that the model has to make again."""
    tool, is_leased = this_round.call.name, task.lease_owner is not None
    again = Repetition.of(this_round.call, task)
    if waits_for_url:
        text = (
            f"{tool} waits for the user, who has not finished at the page. Call {again.text} when they have."
        )
        return this_round.unfinished_reply(text, "waiting_for_answer", again.meta(Status.INPUT_REQUIRED))
    meta = again.meta(Status.WORKING)
    if is_leased:
        text = f"{tool} is still running. Call {again.text} to get its result."
        return this_round.unfinished_reply(text, "still_running", meta)
    text = f"This is not finished: {tool} needs more time. Call {again.text}: it continues where it stopped."
    return this_round.unfinished_reply(text, "parked", meta)


def result(this_round: Round, task: Task) -> Reply:
    """Build the reply with the stored result of a call that has ended. It has its large results, too."""
    if task.error is not None:
        error = ProtocolError(task.error["code"], task.error["message"], task.error.get("data"))
        return this_round.reply(error, None)
    return this_round.reply(task.result, "result_repeated")


def ended(this_round: Round) -> Reply:
    """Build the reply to an answer for a call that no longer exists."""
    text = f"This call of {this_round.call.name} has ended or expired. A new call starts from the beginning."
    return this_round.error_reply(ClientError(CallAborted(text), "call_ended"))


def unknown_code(this_round: Round) -> Reply:
    """Build the reply to a code that finds no call. It does not say why: the caller may have guessed it."""
    text = (
        f"This {CONTINUATION_CODE} continues no call of {this_round.call.name} with these arguments: it is "
        "wrong, the call has ended, or the other arguments have changed. Nothing was done. "
        f"Send the arguments of the call again, or leave out {CONTINUATION_CODE} for a new call."
    )
    return this_round.error_reply(ClientError(CallAborted(text), "call_ended"))


def late(this_round: Round, task: Task) -> Reply:
    """Build the reply to a form whose questions have other answers already."""
    text = (
        "These questions were answered before, perhaps in another window, and the call continues with those "
        f"answers. What was sent now was not stored. Call {Repetition.of(this_round.call, task).text}: that "
        "call returns the result."
    )
    return this_round.error_reply(ClientError(CallAborted(text), "answers_late"))


def too_large(this_round: Round, limit: int) -> Reply:
    """Build the reply to an answer that no item of the table can hold."""
    text = f"The answer is too large: at most about {limit} bytes of JSON. Give a shorter one."
    return this_round.error_reply(ClientError(ToolError(text), "answers_too_large"))
