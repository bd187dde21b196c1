"""Lists of tools, prompts and resources, in pages with stateless cursors (server/utilities/pagination).

A cursor holds a position and a digest of the names in the list. Only cursors that this list issues are
accepted, and a caller who may read the list may read every page.

The list of tools depends on how its client can be asked. Clients that show MCP Apps learn which view shows
the results of a tool, and through which tool views answer. A result that asks through a fallback, or that
another call has to continue, has no structured content, so a tool with such results has no `outputSchema` for
this client. If the model may answer, the tool has an argument for the answers; if a call of an anonymous
caller may wait for another one, an argument for its code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct, field

from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.http import RESPONSE_OVERHEAD, payload_size
from mcp_roundtrip.protocol.jsonrpc import invalid_params
from mcp_roundtrip.protocol.strict_json import compact_json, digest
from mcp_roundtrip.server.call_plan import ClientAbilities, Plan, plan_call
from mcp_roundtrip.server.options import (
    ANSWER_TOOL,
    CONTINUATION_CODE,
    INPUT_RESPONSES,
    QUESTIONS_URI,
    Fallback,
    TaskSupport,
)
from mcp_roundtrip.server.request_types import Reply, RequestContext


class Listable(Protocol):
    @property
    def scopes(self) -> tuple[str, ...]: ...
    def definition(self) -> Mapping[str, Any]: ...


class ListItem(Struct, frozen=True):
    """An item whose object the function `definition` builds."""

    definition: Callable[[], Mapping[str, Any]]
    scopes: tuple[str, ...] = ()


class FeatureList(Struct):
    """The handler of a list method. The JSON of a page is written once, unless it depends on the scopes.

    `member`: the member of the result that holds the list, such as "tools".
    `items`: by name, in the order of the list.
    `is_private`: whether the list depends on what the client declared.
    """

    member: str
    items: Mapping[str, Listable]
    is_private: bool = False
    _pages: dict[str, Reply] = field(default_factory=dict)
    _reported: set[str] = field(default_factory=set)
    _sizes: list[int] = field(default_factory=list)

    def __call__(self, context: RequestContext) -> Reply:
        """Return a page of the list. Raises ProtocolError -32602 for an unknown cursor."""
        if context.hides_unauthorized:
            return Reply(self._page(context))
        page = compact_json([context.params.get("cursor"), context.invocation.max_response_bytes])
        if page not in self._pages:
            self._pages[page] = Reply(results.PreSerialized(self._page(context)))
        return self._pages[page]

    def _page(self, context: RequestContext) -> dict[str, Any]:
        options, names, hides = context.options, list(self.items), context.hides_unauthorized
        if hides:
            held = options.hierarchy.expand(context.scopes)
            names = [name for name in names if held.issuperset(self.items[name].scopes)]
        cursor = context.params.get("cursor")
        part, following = find_page(self.member, names, cursor, self._page_size(context))
        members: dict[str, Any] = {self.member: list(self._definitions(names[part], context)), **following}
        is_private = hides or self.is_private
        return results.cacheable(options.server_info, options.list_ttl_ms, is_private=is_private, **members)

    def _page_size(self, context: RequestContext) -> int:
        """Return how many items keep every page below the limit of a response: an item is never split."""
        if not self._sizes:
            items = self._definitions([*self.items], context)
            self._sizes = [payload_size(compact_json(each)) + 1 for each in items]
        most, room = context.options.page_size, context.invocation.max_response_bytes - RESPONSE_OVERHEAD
        return most if sum(self._sizes) <= room else max(1, min(most, room // max(self._sizes)))

    def _definitions(self, names: Sequence[str], context: RequestContext) -> Iterator[Mapping[str, Any]]:
        """Yield every definition that can be built; log each of the others once."""
        for name in names:
            try:
                yield self.items[name].definition()
            except Exception as error:  # the annotations of a function may raise anything
                if name not in self._reported:
                    self._reported.add(name)
                    kind = "resource" if self.member == "resourceTemplates" else self.member.removesuffix("s")
                    context.ports.observer.record_failure("definition_failed", error, **{kind: name})


def find_page(member: str, names: Sequence[str], cursor: Any, size: int) -> tuple[slice, dict[str, str]]:
    """Return a page of a list, and `nextCursor` if more follows. Raises ProtocolError -32602."""
    if not isinstance(cursor, str | None):
        raise invalid_params("cursor must be a string")
    # `member` distinguishes lists that hold the same names.
    suffix = f".{digest('cursor', [member, *names], size=12)}" if len(names) > size else ""
    positions = {f"{start}{suffix}": start for start in range(size, len(names), size)}
    if cursor is not None and cursor not in positions:
        raise invalid_params("unknown cursor")
    start = 0 if cursor is None else positions[cursor]
    end = start + size
    return slice(start, end), {"nextCursor": f"{end}{suffix}"} if end < len(names) else {}


_OBJECT: Final[Mapping[str, Any]] = {"type": "object", "additionalProperties": True}

_ANSWER_TOOL: Final[Mapping[str, Any]] = {
    "name": ANSWER_TOOL,
    "title": "Answer questions",
    "description": "The form in the conversation sends the answers of the user through this tool.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "tool": {"type": "string", "description": "The tool that asked."},
            "arguments": {**_OBJECT, "description": "The arguments of the call that asked."},
            "state": {"type": "string", "description": "The state from the result that asked."},
            "answers": {
                **_OBJECT,
                "description": "ElicitResult objects by key. Without any: where does the call stand?",
            },
        },
        "required": ["tool", "arguments", "state", "answers"],
    },
    "_meta": {"ui": {"visibility": ["app"]}},
}
"""The answer tool (see `tools`), in lists for clients to whose views a tool may show questions."""

_CODE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "string",
    "description": (
        "The code from the result of an unfinished call. With it, and with the same other arguments, it "
        "continues. Leave it out, or empty, in a new call."
    ),
}

_RESPONSES_SCHEMA: Final[Mapping[str, Any]] = {
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


def _add_argument(members: dict[str, Any], name: str, argument: Mapping[str, Any]) -> None:
    schema = members["inputSchema"]
    members["inputSchema"] = {**schema, "properties": {**schema.get("properties", {}), name: argument}}


def _is_varied(tool: ListedTool, client: ClientAbilities) -> bool:
    """Return whether clients of other kinds see another definition of a tool."""
    has_channels = client.stores_calls or not {"default"}.issuperset(tool.channels)
    return tool.view_uri is not None or (tool.asks and has_channels)


class ToolList(Struct):
    """The handler of `tools/list`: one list for each kind of client."""

    tools: Mapping[str, ListedTool]
    _lists: dict[ClientAbilities, FeatureList] = field(default_factory=dict)

    def __call__(self, context: RequestContext) -> Reply:
        during_call = context.without_input_capabilities() if context.request.is_legacy else context
        client = during_call.client_abilities()
        if client not in self._lists:
            is_private = any(_is_varied(tool, client) for tool in self.tools.values())
            self._lists[client] = FeatureList("tools", self._items(client), is_private)
        return self._lists[client](context)

    def _items(self, client: ClientAbilities) -> dict[str, ListItem]:
        plans = {name: plan_call(client, tool.channels, asks=tool.asks) for name, tool in self.tools.items()}
        items = {
            name: ListItem(partial(self.definition, name, client, plan), self.tools[name].scopes)
            for name, plan in plans.items()
        }
        if any("app" in plan.fallbacks for plan in plans.values()):
            items[ANSWER_TOOL] = ListItem(lambda: _ANSWER_TOOL)
        return items

    def definition(self, name: str, client: ClientAbilities, plan: Plan) -> dict[str, Any]:
        """Build the Tool object that clients of one kind see."""
        tool = self.tools[name]
        members = dict(tool.definition())
        if plan.may_end_unfinished:
            members.pop("outputSchema", None)
        if "model" in plan.fallbacks:
            _add_argument(members, INPUT_RESPONSES, _RESPONSES_SCHEMA)
        if plan.parks and plan.may_end_unfinished and not client.signed_in:
            _add_argument(members, CONTINUATION_CODE, _CODE_SCHEMA)
        uri = tool.view_uri or (QUESTIONS_URI if "app" in plan.fallbacks else None)
        if client.apps and uri is not None:
            meta = members.get("_meta", {})
            # Some hosts read the flat member only, which preceded the other.
            view = {"ui": {**meta.get("ui", {}), "resourceUri": uri}, "ui/resourceUri": uri}
            members["_meta"] = {**meta, **view}
        return members
