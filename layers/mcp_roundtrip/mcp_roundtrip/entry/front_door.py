"""The one public endpoint in front of many tool functions.

It answers discovery and the lists from a catalog that a build step writes, and passes calls on, the event
unchanged, to the function that owns the tool. It runs no tool code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_roundtrip import wiring
from mcp_roundtrip.canonical import parse_json
from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip.entry.server import (
    LegacyTasks,
    assembled,
    checked_scopes,
    hierarchy,
    initial_scopes,
    known_dialect,
    server_info,
)
from mcp_roundtrip.errors import INVALID_PARAMS, DefinitionError, ProtocolError
from mcp_roundtrip.http import HttpResponse
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.protocol.methods import (
    COMPLETION_COMPLETE,
    PROMPTS_GET,
    PROMPTS_LIST,
    RESOURCES_LIST,
    RESOURCES_READ,
    RESOURCES_TEMPLATES_LIST,
    TOOLS_CALL,
    TOOLS_LIST,
)
from mcp_roundtrip.protocol.results import LIST_TTL_MS
from mcp_roundtrip.server.endpoint import Endpoint
from mcp_roundtrip.server.invocation import Forwarded, definition_digest, patience_s
from mcp_roundtrip.server.model import (
    PAGE_SIZE,
    Handler,
    RequestContext,
    ServerOptions,
    authorize,
    kept,
    listed,
    named,
)
from mcp_roundtrip.server.round import internal_error
from mcp_roundtrip.server.tools import LegacyQuestions, TaskSupport

if TYPE_CHECKING:
    from mcp_roundtrip.protocol.uri_template import UriIndex


@dataclass(frozen=True, slots=True)
class Listed:
    """A feature in the catalog: who owns it, how it is listed, and whether calls may or must become tasks.

    `legacy_questions` is its owner's choice, as far as lists depend on it; `scopes` is what calls need.
    """

    owner: str
    members: Mapping[str, Any]
    task: TaskSupport | None = None
    legacy_questions: LegacyQuestions = "error"
    scopes: tuple[str, ...] = ()

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> Listed:
        """A row of the catalog file."""
        questions = row.get("legacyQuestions", "error")
        return cls(row["owner"], row["definition"], row.get("task"), questions, tuple(row.get("scopes", ())))

    def definition(self) -> Mapping[str, Any]:
        return self.members


@dataclass(frozen=True, slots=True)
class Catalog:
    """What all owners offer, by name, URI or template, which scopes imply others, and whether owners hide
    features from callers without their scopes."""

    tools: Mapping[str, Listed]
    prompts: Mapping[str, Listed]
    resources: Mapping[str, Listed]
    templates: Mapping[str, Listed]
    scopes: Mapping[str, Sequence[str]]
    hides: bool = False

    @classmethod
    def read(cls, text: str) -> Catalog:
        """A catalog file, every list in its order. Raises ValueError when it is none."""
        content = parse_json(text)
        try:
            tools, prompts, resources, templates = (
                {row["definition"][key]: Listed.read(row) for row in content.get(member, ())}
                for member, key in CATALOG_KEYS.items()
            )
            scopes = {name: tuple(narrower) for name, narrower in content.get("scopes", {}).items()}
            hides = content.get("hideUnauthorized") is True
        except (KeyError, TypeError, AttributeError):
            raise ValueError("this is no catalog; write one with `make catalog`") from None
        return cls(tools, prompts, resources, templates, scopes, hides)

    @property
    def has_scopes(self) -> bool:
        """Whether any feature needs scopes."""
        kinds = (self.tools, self.prompts, self.resources, self.templates)
        return any(each.scopes for kind in kinds for each in kind.values())


CATALOG_KEYS: Final = {"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}
"""The lists of a catalog file, and what identifies a definition in each."""


class FrontDoor:
    """An MCP endpoint over a catalog file; `MCP_OWNERS` says which function each owner is.

    The keywords are those of `Server`; the owners' servers need `legacy_clients` and `legacy_tasks` alike.
    Scopes are checked here and by the owner again; which of them imply others the owners' servers say, and
    also whether features are hidden (`hide_unauthorized`, by default what the catalog says): each owner has a
    path of its own. Raises DefinitionError where the front door and its owners do not agree.
    """

    def __init__(
        self,
        name: str,
        catalog: Path,
        *,
        version: str = "1.0.0",
        title: str | None = None,
        instructions: str | None = None,
        legacy_clients: bool = True,
        legacy_tasks: LegacyTasks | None = None,
        page_size: int = PAGE_SIZE,
        list_ttl_ms: int = LIST_TTL_MS,
        initial_scopes: Sequence[str] | None = None,
        hide_unauthorized: bool | None = None,
        ports: Callable[[], Ports] = wiring.ports,
    ) -> None:
        wiring.prewarm()
        self.info: Mapping[str, Any] = server_info(name, version, title)
        self.catalog = Catalog.read(catalog.read_text(encoding="utf-8"))
        self._options = ServerOptions(
            self.info,
            instructions,
            page_size=page_size,
            list_ttl_ms=list_ttl_ms,
            hierarchy=hierarchy(self.catalog.scopes),
            hide_unauthorized=_hides(hide_unauthorized, self.catalog),
        )
        self._initial_scopes = checked_scopes(initial_scopes)
        self._legacy_clients = legacy_clients
        self._legacy_tasks = known_dialect(legacy_tasks, legacy_clients)
        self._ports = ports

    @cached_property
    def endpoint(self) -> Endpoint:
        """The front door's methods."""
        catalog = self.catalog
        offered = (catalog.tools, catalog.prompts, catalog.resources, catalog.templates)
        return assembled(
            self._options,
            self._features,
            self._legacy_handlers if self._legacy_clients else None,
            initial_scopes(self._initial_scopes, self._options, *offered),
            has_tasks=self._has_tasks,
        )

    @cached_property
    def _features(self) -> dict[str, dict[str, Handler]]:
        """The methods of each capability that is used."""
        return {"tools": self._tool_methods(), **self._further_features()}

    def _tool_methods(self) -> dict[str, Handler]:
        return {TOOLS_LIST: self._lists("tools", self.catalog.tools), TOOLS_CALL: self._call}

    def _further_features(self) -> dict[str, dict[str, Handler]]:
        found: dict[str, dict[str, Handler]] = {}
        prompts, resources, templates = self.catalog.prompts, self.catalog.resources, self.catalog.templates
        if prompts:
            found["prompts"] = {
                PROMPTS_LIST: self._lists("prompts", prompts),
                PROMPTS_GET: lambda context: self._forward(
                    named(self._options, prompts, context, "prompt"), context
                ),
            }
        if resources or templates:
            from mcp_roundtrip.server.resources import uri_of

            found["resources"] = {
                RESOURCES_LIST: self._lists("resources", resources),
                RESOURCES_TEMPLATES_LIST: self._lists("resourceTemplates", templates),
                RESOURCES_READ: lambda context: self._forward(
                    self._resource(uri_of(context.route.params), context), context
                ),
            }
        if found:
            from mcp_roundtrip.server.completions import reference_of

            found["completions"] = {
                COMPLETION_COMPLETE: lambda context: self._forward(
                    self._referred(*reference_of(context.route.params), context), context
                )
            }
        return found

    def _resource(self, uri: str, context: RequestContext) -> Listed:
        from mcp_roundtrip.server.resources import find_authorized

        return find_authorized(self._options, self._index, uri, context)[0]

    @cached_property
    def _index(self) -> UriIndex[Listed]:
        from mcp_roundtrip.protocol.uri_template import UriIndex, UriTemplate

        entries = {**self.catalog.resources, **self.catalog.templates}
        return UriIndex((UriTemplate.parse(text), listed) for text, listed in entries.items())

    def _referred(self, kind: str, name: str, context: RequestContext) -> Listed:
        unknown = ProtocolError(INVALID_PARAMS, f"Unknown {kind}: {name[:128]}")
        items = self.catalog.prompts
        if kind == "resource":
            from mcp_roundtrip.protocol.uri_template import find_equivalent

            items = {**self.catalog.resources, **self.catalog.templates}
            name = find_equivalent(name, items)
        return authorize(self._options, items.get(name), context, unknown)

    def _legacy_handlers(self) -> Mapping[str, Handler]:
        from mcp_roundtrip.server.legacy.methods import LegacyServer  # at the first request of that era

        tasks: Mapping[str, Handler] = {}
        if self._legacy_tasks is not None and self._has_tasks:
            from mcp_roundtrip.server.legacy.sep_2322 import task_methods  # off by default

            tasks = task_methods()
        return LegacyServer(self._options, self._features, self.catalog.tools, tasks=tasks).handlers()

    @property
    def _has_tasks(self) -> bool:
        return any(each.task for each in self.catalog.tools.values())

    def lambda_handler(self, event: Any, context: Any) -> Any:
        """The Lambda handler: `handler = front_door.lambda_handler`."""
        return handle(self.endpoint, event, context, self._ports)

    def _lists(self, member: str, items: Mapping[str, Listed]) -> Handler:
        return kept(self._options, lambda context: listed(self._options, member, items, context))

    def _call(self, context: RequestContext) -> HttpResponse:
        return self._forward(named(self._options, self.catalog.tools, context), context)

    def _forward(self, owned: Listed, context: RequestContext) -> HttpResponse:
        ports, invocation = context.ports, context.invocation
        timeout_s = patience_s(invocation.deadline_ms - ports.clock_ms())
        deadline_ms = int((ports.clock() + timeout_s) * 1_000)
        definition = definition_digest(owned.members)
        hides = self._options.hide_unauthorized
        custom = Forwarded(deadline_ms, definition, invocation.correlation_id, self.info, hides).custom()
        try:
            raw = ports.forward(owned.owner, invocation.event or {}, custom, timeout_s)
        except ForwardingFailed as error:
            ports.observer.failure("forwarding_failed", error, owner=owned.owner)
            raise internal_error(invocation.correlation_id) from None
        name = owned.members.get("uriTemplate") or owned.members.get("uri") or owned.members["name"]
        ports.observer.record(
            "request_forwarded", method=context.route.method, feature=name, owner=owned.owner
        )
        return HttpResponse(200, raw=raw)


def _hides(chosen: bool | None, catalog: Catalog) -> bool:
    """Whether the front door hides features. Raises DefinitionError where its owners do otherwise."""
    if chosen is not None and chosen is not catalog.hides and catalog.has_scopes:
        raise DefinitionError(
            f"FrontDoor(hide_unauthorized={chosen}), and by the catalog the owners' servers do otherwise, "
            f"whom callers can ask at their own paths; write Server(..., hide_unauthorized={chosen}) for "
            "each owner with scopes and run `make catalog`, or remove it from the front door"
        )
    return catalog.hides if chosen is None else chosen
