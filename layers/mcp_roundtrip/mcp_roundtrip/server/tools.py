"""Tools: what a model can call (server/tools)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from mcp_roundtrip.errors import ToolError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.protocol.methods import TOOLS_CALL, TOOLS_LIST
from mcp_roundtrip.schema.output import MISSING, Output
from mcp_roundtrip.server.inputs import CallParams
from mcp_roundtrip.server.model import Handler, RequestContext, ServerOptions, call_of, listed, named
from mcp_roundtrip.server.round import Call, Reply

if TYPE_CHECKING:
    from mcp_roundtrip.server.feature import Parameters

TaskSupport = Literal["optional", "required"]
"""Whether a call may become a task, or has to be able to."""

LegacyQuestions = Literal["error", "default", "model"]
"""What becomes of a question that a client of the `initialize` era cannot be asked: the call ends in an
error, the question falls back to its default, or the model is told to ask it."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A registered tool: a `Feature`."""

    name: str
    function: Callable[..., Any]
    parameters: Parameters
    output: Output
    requires: tuple[CapabilityPath, ...] = ()
    task: TaskSupport | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    legacy_questions: LegacyQuestions = "error"
    scopes: tuple[str, ...] = ()

    kind: ClassVar[str] = "tool"

    def completed(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """CallToolResult."""
        content, structured = self.output.dump(value)
        members = {} if structured is MISSING else {"structuredContent": structured}
        return results.tool_result(server_info, content, members)

    def refused(self, server_info: Mapping[str, Any], error: ToolError) -> dict[str, Any]:
        """A CallToolResult for the model."""
        return results.tool_error(server_info, str(error))

    def definition(self) -> dict[str, Any]:
        """The Tool object of `tools/list`."""
        members: dict[str, Any] = {"name": self.name}
        if self.parameters.description:
            members["description"] = self.parameters.description
        members |= {"inputSchema": self.parameters.json_schema(), **self.extra}
        output_schema = self.output.json_schema()
        if output_schema is not None:
            members["outputSchema"] = output_schema
        return members


@dataclass(frozen=True, slots=True)
class ToolServer:
    """`tools/list` and `tools/call` over a set of tools."""

    options: ServerOptions
    tools: Mapping[str, Tool]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {TOOLS_LIST: self._list, TOOLS_CALL: lambda context: self.call(context).answer()}

    @property
    def has_tasks(self) -> bool:
        """Whether a call of any tool can become a task."""
        return any(tool.task for tool in self.tools.values())

    def _list(self, context: RequestContext) -> Reply:
        return listed(self.options, "tools", self.tools, context)

    def tool(self, context: RequestContext) -> Tool:
        """The tool that a `tools/call` names. Raises ProtocolError or InsufficientScope."""
        return named(self.options, self.tools, context)

    def call(self, context: RequestContext) -> Call:
        """The call that a `tools/call` asks for. Raises ProtocolError or InsufficientScope."""
        call_params = CallParams.read(context.route.params)
        tool = self.tool(context)
        if tool.parameters.parameter_headers and context.headers is not None:
            from mcp_roundtrip.protocol.parameter_headers import (
                check_parameter_headers,  # few tools mirror any
            )

            mirrored, headers = tool.parameters.parameter_headers, context.headers
            check_parameter_headers(
                mirrored, call_params.arguments, headers, required=not context.route.is_legacy
            )
        return call_of(self.options, context, tool, tool.name, call_params)
