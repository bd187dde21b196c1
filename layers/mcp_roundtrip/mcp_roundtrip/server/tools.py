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
from mcp_roundtrip.server.calls import Call, Reply
from mcp_roundtrip.server.exchange import Exchange, Handler, ServerFacts, call_of, listed, named
from mcp_roundtrip.server.inputs import Inputs

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

    facts: ServerFacts
    tools: Mapping[str, Tool]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {TOOLS_LIST: self._list, TOOLS_CALL: lambda exchange: self.call(exchange).answer()}

    @property
    def has_tasks(self) -> bool:
        """Whether a call of any tool can become a task."""
        return any(tool.task for tool in self.tools.values())

    def _list(self, exchange: Exchange) -> Reply:
        return listed(self.facts, "tools", self.tools, exchange)

    def tool(self, exchange: Exchange) -> Tool:
        """The tool that a `tools/call` names. Raises ProtocolError or InsufficientScope."""
        return named(self.facts, self.tools, exchange)

    def call(self, exchange: Exchange) -> Call:
        """The call that a `tools/call` asks for. Raises ProtocolError or InsufficientScope."""
        inputs = Inputs.read(exchange.route.params)
        tool = self.tool(exchange)
        if tool.parameters.mirrored and exchange.headers is not None:
            from mcp_roundtrip.protocol.parameter_headers import check_parameters  # few tools mirror any

            mirrored, headers = tool.parameters.mirrored, exchange.headers
            check_parameters(mirrored, inputs.arguments, headers, required=not exchange.route.is_legacy)
        return call_of(self.facts, exchange, tool, tool.name, inputs)
