"""The list of tools, which depends on how its client can be asked.

Clients that show MCP Apps learn which view shows the results of a tool, and through which tool views answer.
A result that asks through a fallback, or that another call has to continue, has no structured content, so a
tool with such results has no `outputSchema` for this client. If the model may answer, the tool has an
argument for the answers; if a call of an anonymous caller may wait for another one, an argument for its code.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct, field

from mcp_roundtrip.server.listing import FeatureList, Listable
from mcp_roundtrip.server.model import Reply, RequestContext
from mcp_roundtrip.server.options import (
    ANSWER_TOOL,
    CONTINUATION_CODE,
    INPUT_RESPONSES,
    QUESTIONS_URI,
    Fallback,
    ServerOptions,
    TaskSupport,
)
from mcp_roundtrip.server.plan import ClientAbilities, Plan, plan_call
from mcp_roundtrip.server.views import ANSWER_TOOL_DEFINITION

_CODE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "string",
    "description": (
        "The code from the result of an unfinished call. With it, and with the same other arguments, it "
        "continues. Leave it out in a new call."
    ),
}

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": (
        "What the user answered to the questions of an earlier call, by their keys. Leave it out until a "
        "result asks for it, and never make up an answer: ask the user."
    ),
    "additionalProperties": True,
}


class ListedTool(Listable, Protocol):
    """A tool, registered or read from a catalog."""

    @property
    def task(self) -> TaskSupport | None: ...
    @property
    def asks(self) -> bool: ...
    @property
    def channels(self) -> tuple[Fallback, ...]: ...
    @property
    def view_uri(self) -> str | None: ...


class ToolVariant(Struct, frozen=True):
    """A tool as clients of one kind see it."""

    tool: ListedTool
    client: ClientAbilities

    @property
    def plan(self) -> Plan:
        """How calls of the tool are asked."""
        return plan_call(self.client, self.tool.channels, asks=self.tool.asks)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the tool."""
        return self.tool.scopes

    def definition(self) -> Mapping[str, Any]:
        """Build the Tool object."""
        members, plan = dict(self.tool.definition()), self.plan
        if plan.may_end_unfinished:
            members.pop("outputSchema", None)
        if "model" in plan.fallbacks:
            members["inputSchema"] = _with_argument(members["inputSchema"], INPUT_RESPONSES, _SCHEMA)
        if plan.parks and plan.may_end_unfinished and not self.client.signed_in:
            members["inputSchema"] = _with_argument(members["inputSchema"], CONTINUATION_CODE, _CODE_SCHEMA)
        if (uri := self._view_uri(plan)) is not None:
            # Some hosts read the flat member only, which preceded the other.
            view = {"ui": {"resourceUri": uri}, "ui/resourceUri": uri}
            members["_meta"] = {**members.get("_meta", {}), **view}
        return members

    def _view_uri(self, plan: Plan) -> str | None:
        """Return the URI of the view of the tool's results: the author's own, or that of questions."""
        if not self.client.apps:
            return None
        return self.tool.view_uri or (QUESTIONS_URI if "app" in plan.fallbacks else None)


def _with_argument(schema: Mapping[str, Any], name: str, argument: Mapping[str, Any]) -> dict[str, Any]:
    """Add an optional argument to an `inputSchema`."""
    return {**schema, "properties": {**schema.get("properties", {}), name: argument}}


def _abilities(context: RequestContext) -> ClientAbilities:
    """Return what the client that requests a list can do during calls."""
    if context.request.is_legacy:
        return context.without_input_capabilities().client_abilities(takes_rounds=False)
    return context.client_abilities(takes_rounds=True)


class AnswerToolItem(Struct, frozen=True):
    """The tool through which views answer."""

    scopes: tuple[str, ...] = ()

    def definition(self) -> Mapping[str, Any]:
        """Return the Tool object."""
        return ANSWER_TOOL_DEFINITION


class ToolList(Struct):
    """The handler of `tools/list`: one list for each kind of client.

    `is_constant`: whether the tools stay the same until the next deployment.
    """

    options: ServerOptions
    tools: Mapping[str, ListedTool]
    is_constant: bool = False
    _lists: dict[ClientAbilities, FeatureList] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)

    def __call__(self, context: RequestContext) -> Reply:
        """Return a page of the list. Raises ProtocolError -32602 for an unknown cursor."""
        client = _abilities(context)
        if client not in self._lists:
            self._lists[client] = self.list_for(client, context.serves_pages)
        return self._lists[client](context)

    def list_for(self, client: ClientAbilities, parks_calls: bool) -> FeatureList:
        """Return the list for clients of one kind. `parks_calls`: the deployment can park calls."""
        return FeatureList(
            self.options,
            "tools",
            self.items(client),
            self.is_constant,
            self.is_varied(parks_calls),
            _reported=self._reported,
        )

    def items(self, client: ClientAbilities) -> dict[str, Listable]:
        """Return the tools as clients of one kind see them."""
        variants = {name: ToolVariant(tool, client) for name, tool in self.tools.items()}
        answer_tool: dict[str, Listable] = {}
        if any("app" in variant.plan.fallbacks for variant in variants.values()):
            answer_tool = {ANSWER_TOOL: AnswerToolItem()}
        return {**variants, **answer_tool}

    def is_varied(self, parks_calls: bool) -> bool:
        """Return whether clients of different kinds see different lists, so that no cache may share one."""
        return any(
            tool.view_uri or (tool.asks and (parks_calls or not {"default"}.issuperset(tool.channels)))
            for tool in self.tools.values()
        )
