"""The answer tool, through which a view answers the questions of a call.

Hosts pass the name and the arguments of a view's `tools/call`, and nothing else. So what a retry has beside
its arguments, the state and the answers, are arguments here. The call inside is the one that asked: the same
tool with the same arguments, for the same caller, whose scopes and state are checked as in any retry.

A model cannot call this tool if its host keeps the promises of MCP Apps: it neither lists app-only tools to
the model nor shows it the state. Without a valid state, a call changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.errors import ProtocolError, StateRejected
from mcp_roundtrip.internal_errors import KeyServiceError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.server.admission import authorize, unknown_item
from mcp_roundtrip.server.app_questions import META_QUESTIONS, with_questions
from mcp_roundtrip.server.channels import usable_channels
from mcp_roundtrip.server.client_abilities import without_input_capabilities
from mcp_roundtrip.server.model import CallParams, FeatureCall, Reply, RequestContext, RunFeature
from mcp_roundtrip.server.options import ANSWER_TOOL
from mcp_roundtrip.server.parked_replies import PARKED
from mcp_roundtrip.server.round import Round
from mcp_roundtrip.server.tools import Tool, ToolMethods

_ENDED: Final = (
    "These questions can no longer be answered: they have expired, or they belong to another call or user. "
    "Ask the assistant to call the tool again."
)
"""The only text for a refused state; the log has the reason."""


class _Answer(Struct, frozen=True):
    tool: str
    arguments: Mapping[str, Any]
    state: str
    answers: Mapping[str, Any]


def answer(context: RequestContext, methods: ToolMethods, run: RunFeature) -> Reply:
    """Continue the call that asked, and return its result with the status for the view.

    Raises ProtocolError for a client that shows no views and for an unknown tool, and InsufficientScope for
    the scopes of the tool that asked.
    """
    if not shows_apps(context.request.meta.capabilities):
        raise unknown_item("tool", ANSWER_TOOL)
    given = _read(CallParams.read(context.params))
    if isinstance(given, str):
        error = results.tool_error(methods.options.server_info_for(context.invocation), given)
        return Reply(error, log_fields={"tool": ANSWER_TOOL, "outcome": "arguments_refused"})
    tool = authorize(
        methods.options,
        methods.tools.get(given.tool),
        context,
        lambda: unknown_item("tool", given.tool),
    )
    return _continue(_inner_call(context, methods, tool, given), run)


def _read(params: CallParams) -> _Answer | str:
    """Return the arguments, or the text that says what is wrong with them."""
    values = params.arguments
    for name, kind in (("tool", str), ("arguments", dict), ("state", str), ("answers", dict)):
        if not isinstance(values.get(name), kind):
            expected = "a string" if kind is str else "an object"
            return f"{name}: Input should be {expected}"
    return _Answer(values["tool"], values["arguments"], values["state"], values["answers"])


def _inner_call(context: RequestContext, methods: ToolMethods, tool: Tool, given: _Answer) -> FeatureCall:
    """Return the call that asked. A view can answer neither input requests of the client nor tasks."""
    params = CallParams(given.arguments, given.answers, given.state, is_retry=True, is_in_app=True)
    return FeatureCall(tool, tool.name, params, without_input_capabilities(context), methods.options)


def _continue(call: FeatureCall, run: RunFeature) -> Reply:
    """Open the state, and continue the call that it names or holds."""
    ports = call.context.ports
    try:
        payload = ports.state_codec().open(call.binding, call.params.request_state).payload
    except StateRejected as rejected:
        ports.observer.record("state_refused", **call.log_identity, reason=rejected.reason)
        return _ended(call)
    except KeyServiceError as error:
        ports.observer.record_failure("state_unavailable", error, **call.log_identity)
        raise call.context.internal_error from error
    task_id = payload.get(PARKED) if isinstance(payload, dict) else None
    return _for_view(call, run(call) if task_id is None else _answer_parked(call, task_id))


def _answer_parked(call: FeatureCall, task_id: str) -> Reply:
    from mcp_roundtrip.server.parked_calls import answer  # calls without a table are not parked

    make_round: type[Round] = Round
    if call.context.request.is_legacy:
        from mcp_roundtrip.server.legacy.runner import LegacyRound  # most clients are of 2026-07-28

        make_round = LegacyRound
    return answer(call, task_id, call.params.input_responses, usable_channels(call), make_round)


def _ended(call: FeatureCall) -> Reply:
    body = with_questions(results.tool_error(call.server_info, _ENDED), {"status": "ended"})
    return Reply(body, log_fields={**call.log_identity, "outcome": "state_refused"})


def _for_view(call: FeatureCall, reply: Reply) -> Reply:
    """Add the status for the view to a reply that has none."""
    body = reply.body
    if isinstance(body, ProtocolError) or META_QUESTIONS in body.get("_meta", {}):
        return reply
    outcome = reply.log_fields.get("outcome")
    if outcome == "answers_too_large":
        return reply  # the view keeps its form
    status = "ended" if outcome in ("call_ended", "answers_late") else "complete"
    return replace(reply, body=with_questions(body, {"status": status}))
