"""Tools, which a model can call (server/tools), and the answer tool, which a view calls (MCP Apps, SEP-1865).

A view answers the questions of a call through the answer tool. Hosts pass the name and the arguments of a
view's `tools/call`, and nothing else. So what a retry has beside its arguments, the state and the answers,
are arguments of the tool. The call inside is the one that asked: the same tool with the same arguments, for
the same caller, whose scopes and state are checked as in any retry. A model cannot call the answer tool if
its host keeps the promises of MCP Apps: it neither lists app-only tools to the model nor shows it the state.
Without a valid state, a call changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.content.tool_results import Output
from mcp_roundtrip.errors import ProtocolError, ToolError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.protocol.constants import SINGLE_FIELD
from mcp_roundtrip.server.admission import authorize, check_call_headers, find_by_name, unknown_item
from mcp_roundtrip.server.options import (
    ANSWER_TOOL,
    CONTINUATION_CODE,
    INPUT_RESPONSES,
    META_QUESTIONS,
    QUESTIONS_URI,
    ServerOptions,
)
from mcp_roundtrip.server.request_types import CallParams, Feature, FeatureCall, Reply, RequestContext


class Tool(Feature, frozen=True, kw_only=True):
    """A registered tool. `view` is the document of its results (see `features_and_app_views`)."""

    kind = "tool"

    output: Output
    view_uri: str | None = None
    view: str | None = None

    def definition(self) -> dict[str, Any]:
        schema, output_schema = self.parameters.json_schema(), self.output.json_schema()
        members = {"name": self.name, **self.described, "inputSchema": schema, **self.extra}
        return members if output_schema is None else {**members, "outputSchema": output_schema}

    @property
    def form_view_uri(self) -> str | None:
        return self.view_uri or (QUESTIONS_URI if self.asks and "app" in self.channels else None)

    def result(self, call: FeatureCall, value: Any) -> dict[str, Any]:
        return results.tool_result(call.server_info, **self.output.dump(value))

    def error_body(self, call: FeatureCall, error: ToolError) -> dict[str, Any]:
        return results.tool_error(call.server_info, str(error))


class ServerTools(Struct, frozen=True):
    options: ServerOptions
    tools: Mapping[str, Tool]

    def find_call(self, context: RequestContext) -> FeatureCall:
        """Return the call that a `tools/call` asks for. Raises ProtocolError or InsufficientScope."""
        params = CallParams.read(context.params)
        tool = find_by_name(self.tools, context)
        if CONTINUATION_CODE in params.arguments and tool.asks:
            params = _take_code(params)
        params = replace(params, arguments=_known_arguments(tool, params.arguments))
        call = FeatureCall(tool, tool.name, params, context)
        check_call_headers(call)
        return call

    def find_answered_call(self, context: RequestContext) -> FeatureCall | Reply:
        """Return the call that asked, or a reply to malformed arguments. Raises as `authorize`."""
        if not shows_apps(context.request.meta.capabilities):
            raise unknown_item("tool", ANSWER_TOOL)
        given = CallParams.read(context.params).arguments
        for member, kind in (("tool", str), ("arguments", dict), ("state", str), ("answers", dict)):
            if not isinstance(given.get(member), kind):
                text = f"{member}: Input should be {'a string' if kind is str else 'an object'}"
                log_fields = {"tool": ANSWER_TOOL, "outcome": "arguments_refused"}
                return Reply(results.tool_error(context.server_info, text), log_fields=log_fields)
        name = given["tool"]
        tool = authorize(self.tools.get(name), context, lambda: unknown_item("tool", name))
        params = CallParams(given["arguments"], given["answers"], given["state"], is_in_app=True)
        # A view can answer neither input requests of the client nor tasks.
        return FeatureCall(tool, tool.name, params, context.without_input_capabilities())


def _take_code(params: CallParams) -> CallParams:
    """Separate the code of a waiting call from the arguments; null and "" count as left out."""
    arguments = dict(params.arguments)
    code = arguments.pop(CONTINUATION_CODE)
    return replace(params, arguments=arguments, continuation_code=None if code in (None, "") else str(code))


def _known_arguments(tool: Tool, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments without those that are dropped, with the answers that a model passes on."""
    known = tool.parameters.known(raw)
    if INPUT_RESPONSES in raw and "model" in tool.channels:
        return {**known, INPUT_RESPONSES: raw[INPUT_RESPONSES]}
    return known


def take_responses(params: CallParams) -> CallParams:
    """Separate the answers that a model passed on from the tool's arguments; null counts as no answers.

    An answer is the content of the form or an ElicitResult. For a form with one field, its value is enough.
    Raises ArgumentsError.
    """
    arguments = dict(params.arguments)
    given = arguments.pop(INPUT_RESPONSES, None)
    if not isinstance(given, dict | None):
        raise ArgumentsError(f"{INPUT_RESPONSES}: Input should be an object")
    responses = {key: _elicit_result(answer) for key, answer in (given or {}).items()}
    return replace(params, arguments=arguments, model_responses=responses)


def _elicit_result(answer: Any) -> dict[str, Any]:
    match answer:
        case {"action": "accept", "content": dict(content)} if _has_only(answer, "action", "content"):
            return {"action": "accept", "content": content}
        case {"action": "decline" | "cancel" as action} if _has_only(answer, "action"):
            return {"action": action}
        case dict():
            return {"action": "accept", "content": answer}
    return {"action": "accept", "content": {SINGLE_FIELD: answer}}


def _has_only(answer: Mapping[str, Any], *names: str) -> bool:
    """Return whether all other members are null, which counts as absent."""
    return all(member is None or name in names for name, member in answer.items())


def with_status(reply: Reply) -> Reply:
    """Add the status for the view to a reply that has none."""
    body, outcome = reply.body, reply.log_fields.get("outcome")
    if isinstance(body, ProtocolError) or META_QUESTIONS in body.get("_meta", {}):
        return reply
    if outcome == "answers_too_large":
        return reply  # the view keeps its form
    status = "ended" if outcome in ("call_ended", "answers_late", "state_refused") else "complete"
    meta = {**body.get("_meta", {}), META_QUESTIONS: {"status": status}}
    return replace(reply, body={**body, "_meta": meta})
