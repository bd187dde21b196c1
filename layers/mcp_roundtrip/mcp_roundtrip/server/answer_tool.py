"""The answer tool, through which a view answers the questions of a call.

Hosts pass the name and the arguments of a view's `tools/call`, and nothing else. So what a retry has beside
its arguments, the state and the answers, are arguments here. The call inside is the one that asked: the same
tool with the same arguments, for the same caller, whose scopes and state are checked as in any retry.

A model cannot call this tool if its host keeps the promises of MCP Apps: it neither lists app-only tools to
the model nor shows it the state. Without a valid state, a call changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.server.admission import authorize, unknown_item
from mcp_roundtrip.server.model import CallParams, FeatureCall, Reply, RequestContext
from mcp_roundtrip.server.options import ANSWER_TOOL, ServerOptions
from mcp_roundtrip.server.tools import Tool


class _Answer(Struct, frozen=True):
    tool: str
    arguments: Mapping[str, Any]
    state: str
    answers: Mapping[str, Any]


class AnswerTool(Struct, frozen=True):
    """The handler of calls of the answer tool."""

    options: ServerOptions
    tools: Mapping[str, Tool]

    def find_call(self, context: RequestContext) -> FeatureCall | Reply:
        """Return the call that asked, which continues with the answers; a reply to malformed arguments.

        Raises ProtocolError for a client that shows no views and for an unknown tool, and InsufficientScope
        for the scopes of the tool that asked.
        """
        if not shows_apps(context.request.meta.capabilities):
            raise unknown_item("tool", ANSWER_TOOL)
        given = _read(CallParams.read(context.params))
        if isinstance(given, str):
            error = results.tool_error(context.server_info(self.options), given)
            return Reply(error, log_fields={"tool": ANSWER_TOOL, "outcome": "arguments_refused"})
        tool = authorize(
            self.options, self.tools.get(given.tool), context, lambda: unknown_item("tool", given.tool)
        )
        return self._inner_call(tool, given, context)

    def _inner_call(self, tool: Tool, given: _Answer, context: RequestContext) -> FeatureCall:
        """Return the call that asked. A view can answer neither input requests of the client nor tasks."""
        params = CallParams(given.arguments, given.answers, given.state, is_retry=True, is_in_app=True)
        context, takes_rounds = context.without_input_capabilities(), not context.request.is_legacy
        return FeatureCall(tool, tool.name, params, context, self.options, takes_rounds)


def _read(params: CallParams) -> _Answer | str:
    """Return the arguments, or the text that says what is wrong with them."""
    values = params.arguments
    for name, kind in (("tool", str), ("arguments", dict), ("state", str), ("answers", dict)):
        if not isinstance(values.get(name), kind):
            expected = "a string" if kind is str else "an object"
            return f"{name}: Input should be {expected}"
    return _Answer(values["tool"], values["arguments"], values["state"], values["answers"])
