"""The list of tools, which depends on how its client can be asked.

Clients that show MCP Apps learn which view shows the results of a tool, and through which tool views answer.
A result that asks through a fallback, or that another call has to continue, has no structured content, so a
tool with such results has no `outputSchema` for this client. If the model may answer, the tool has an
argument for the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from msgspec import Struct, field

from mcp_roundtrip.fallbacks import Fallback
from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    answers_input_requests,
    declares,
    shows_apps,
)
from mcp_roundtrip.server.listing import FeatureList, Listable
from mcp_roundtrip.server.model import Reply, RequestContext, TaskSupport
from mcp_roundtrip.server.options import ANSWER_TOOL, INPUT_RESPONSES, ServerOptions
from mcp_roundtrip.server.views import ANSWER_TOOL_DEFINITION, QUESTIONS_URI

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


class ClientKind(Struct, frozen=True):
    """How a client can be asked: by `forms` and `urls` of the protocol, in `apps`, or on `pages`.

    `repeats`: a call that runs out of time continues when the client makes it again.
    """

    forms: bool
    urls: bool
    apps: bool
    pages: bool
    repeats: bool

    @classmethod
    def of(cls, context: RequestContext) -> ClientKind:
        """Return the kind of the client that sent a request."""
        declared, answers = context.request.meta.capabilities, not context.request.is_legacy
        forms = answers and declares(declared, ELICITATION_FORM)
        urls = answers and declares(declared, ELICITATION_URL)
        pages = context.can_store_calls
        repeats = pages and not (forms and urls) and not _follows_rounds(context)
        return cls(forms, urls, shows_apps(declared), pages, repeats)

    def fallbacks(self, tool: ListedTool) -> frozenset[Fallback]:
        """Return the fallbacks through which a question of the tool may reach somebody."""
        if not tool.asks or (self.forms and self.urls):
            return frozenset()
        usable: dict[Fallback, bool] = {
            "app": self.apps,
            "page": self.pages,
            "model": not self.forms,
        }
        return frozenset(each for each in tool.channels if usable.get(each))

    def may_end_unfinished(self, tool: ListedTool) -> bool:
        """Return whether a call of the tool may end with a text in the place of its result."""
        return bool(self.fallbacks(tool)) or (tool.asks and self.repeats)

    def view_uri(self, tool: ListedTool) -> str | None:
        """Return the URI of the view of the tool's results: the author's own, or that of questions."""
        if not self.apps:
            return None
        return tool.view_uri or (QUESTIONS_URI if "app" in self.fallbacks(tool) else None)


def _follows_rounds(context: RequestContext) -> bool:
    """Return whether the client continues a call with its state (see `server.channels`)."""
    if context.request.is_legacy or not answers_input_requests(context.request.meta.capabilities):
        return False
    from mcp_roundtrip.server.client_behavior import breaks_on_state_only_rounds  # few clients get here

    return not breaks_on_state_only_rounds(context.request.meta.info)


class ToolVariant(Struct, frozen=True):
    """A tool as clients of one kind see it."""

    tool: ListedTool
    kind: ClientKind

    @property
    def scopes(self) -> tuple[str, ...]:
        """The scopes of the tool."""
        return self.tool.scopes

    def definition(self) -> Mapping[str, Any]:
        """Build the Tool object."""
        members, fallbacks = dict(self.tool.definition()), self.kind.fallbacks(self.tool)
        if self.kind.may_end_unfinished(self.tool):
            members.pop("outputSchema", None)
        if "model" in fallbacks:
            members["inputSchema"] = _with_input_responses(members["inputSchema"])
        if (uri := self.kind.view_uri(self.tool)) is not None:
            # Some hosts read the flat member only, which preceded the other.
            view = {"ui": {"resourceUri": uri}, "ui/resourceUri": uri}
            members["_meta"] = {**members.get("_meta", {}), **view}
        return members


def _with_input_responses(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Add the optional argument for answers to an `inputSchema`."""
    return {**schema, "properties": {**schema.get("properties", {}), INPUT_RESPONSES: _SCHEMA}}


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
    _lists: dict[ClientKind, FeatureList] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)

    def __call__(self, context: RequestContext) -> Reply:
        """Return a page of the list. Raises ProtocolError -32602 for an unknown cursor."""
        kind = ClientKind.of(context)
        if kind not in self._lists:
            self._lists[kind] = self.list_for(kind, context.serves_pages)
        return self._lists[kind](context)

    def list_for(self, kind: ClientKind, parks_calls: bool) -> FeatureList:
        """Return the list for clients of one kind. `parks_calls`: the deployment can park calls."""
        return FeatureList(
            self.options,
            "tools",
            self.items(kind),
            self.is_constant,
            self.is_varied(parks_calls),
            _reported=self._reported,
        )

    def items(self, kind: ClientKind) -> dict[str, Listable]:
        """Return the tools as clients of one kind see them."""
        items: dict[str, Listable] = {name: ToolVariant(tool, kind) for name, tool in self.tools.items()}
        if any("app" in kind.fallbacks(tool) for tool in self.tools.values()):
            items[ANSWER_TOOL] = AnswerToolItem()
        return items

    def is_varied(self, parks_calls: bool) -> bool:
        """Return whether clients of different kinds see different lists, so that no cache may share one."""
        return any(
            tool.view_uri or (tool.asks and (parks_calls or not {"default"}.issuperset(tool.channels)))
            for tool in self.tools.values()
        )
