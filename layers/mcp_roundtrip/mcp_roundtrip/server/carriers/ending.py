"""How a pass ends a stored call: with the result of a task or of a parked call, or with its error."""

from __future__ import annotations

from typing import Final

from mcp_roundtrip.engine.replay import Done, Failed
from mcp_roundtrip.errors import ProtocolError, ToolError
from mcp_roundtrip.internal_errors import CallAborted, ItemTooLarge, ResultTooLarge
from mcp_roundtrip.protocol.canonical import compact_json
from mcp_roundtrip.protocol.http import MAX_RESPONSE_BYTES, payload_size
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.server.errors import ClientError, describe_open_questions
from mcp_roundtrip.server.model import Reply
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.tasks.recorder import MAX_ASKED
from mcp_roundtrip.tasks.worker import Completed, TaskError

RESPONSE_OVERHEAD: Final = 16_384
"""Bytes of a response that are reserved for what surrounds the result of a stored call."""


def final_reply(this_round: Round, outcome: Done | Failed) -> Reply:
    """Return the reply of a pass that ended its call, with a result that the table can hold."""
    call = this_round.call
    observer = call.context.ports.observer
    if isinstance(outcome, Failed) and isinstance(outcome.error, ItemTooLarge):
        observer.record_failure("task_too_large", outcome.error, tool=call.feature.name)
        return this_round.reply(ProtocolError(INTERNAL_ERROR, str(outcome.error)), None)
    reply = this_round.reply_for(outcome)
    if isinstance(reply.body, ProtocolError):
        return reply
    if payload_size(compact_json(reply.body)) <= MAX_RESPONSE_BYTES - RESPONSE_OVERHEAD:
        return reply
    error = ResultTooLarge(MAX_RESPONSE_BYTES)
    observer.record_failure("result_too_large", error, tool=call.feature.name)
    return this_round.error_reply(ClientError(ToolError(str(error)), "result_too_large"))


def too_many_answers(this_round: Round, key: str) -> Reply:
    """Return the reply that ends a call whose question had no accepted answer."""
    text = (
        f"This call was ended: its question {key!r} was asked {MAX_ASKED} times, and no answer was accepted."
        f"{describe_open_questions(this_round.run)} A new call starts from the beginning."
    )
    return this_round.error_reply(ClientError(CallAborted(text), "too_many_answers"))


def conclusion_of(reply: Reply) -> Completed | TaskError:
    """Return the result of the call, or the JSON-RPC error in which it ends."""
    body = reply.body
    if not isinstance(body, ProtocolError):
        return Completed(body)
    error = {"code": body.code, "message": body.message}
    return TaskError(error if body.data is None else {**error, "data": dict(body.data)})
