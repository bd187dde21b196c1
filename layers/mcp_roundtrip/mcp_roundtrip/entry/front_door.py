"""`FrontDoor`, the one public endpoint of many functions.

It serves discovery and the lists from a catalog that a build step writes, and forwards calls, with the event
unchanged, to the function that owns the feature. It also forwards requests for `/tools/<owner>`, the address
of one owner. It runs no code of a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.auth.scopes import ScopeHierarchy
from mcp_roundtrip.deployment import wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.entry.forwarding import Catalog, CatalogEntry, forward, forwarding_failed, owner_response
from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.internal_errors import ForwardingFailed
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.protocol.constants import COMPLETION_COMPLETE, PROMPTS_GET, RESOURCES_READ, TOOLS_CALL
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.results import LIST_TTL_MS
from mcp_roundtrip.server.admission import (
    authorize,
    find_by_name,
    find_by_uri,
    read_reference,
    read_uri,
    unknown_item,
)
from mcp_roundtrip.server.endpoint import Endpoint
from mcp_roundtrip.server.features import Features
from mcp_roundtrip.server.options import (
    ANSWER_TOOL,
    PAGE_SIZE,
    LegacyTasks,
    ServerOptions,
    declared_members,
    make_server_info,
)
from mcp_roundtrip.server.request_types import CallParams, Handler, RequestContext
from mcp_roundtrip.server.views import has_views

if TYPE_CHECKING:
    from mcp_roundtrip.protocol.resource_uris import UriIndex
    from mcp_roundtrip.server.skills import SkillMethods


class FrontDoor:
    """An MCP endpoint that forwards calls to the functions in a catalog.

    `MCP_OWNERS` names the function of each owner in the catalog. The keywords are those of `Server`. The
    owners' servers need the same `legacy_clients` and `legacy_tasks`. The front door checks scopes, and the
    owner checks them again, because every owner also has a path of its own. The scope hierarchy and, by
    default, `hide_unauthorized` come from the catalog. Raises DefinitionError if they differ.
    """

    def __init__(
        self,
        name: str,
        catalog: Path,
        *,
        version: str = "1.0.0",
        title: str | None = None,
        instructions: str | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        website_url: str | None = None,
        description: str | None = None,
        legacy_clients: bool = True,
        legacy_tasks: LegacyTasks | None = None,
        page_size: int = PAGE_SIZE,
        list_ttl_ms: int = LIST_TTL_MS,
        initial_scopes: Sequence[str] | None = None,
        hide_unauthorized: bool | None = None,
        ports: Callable[[], Ports] = wiring.ports,
    ) -> None:
        wiring.prewarm("front_door")
        self.info: Mapping[str, Any] = make_server_info(name, version, title)
        self.catalog = Catalog.read(catalog.read_text(encoding="utf-8"))
        self._options = ServerOptions(
            self.info,
            instructions,
            page_size=page_size,
            list_ttl_ms=list_ttl_ms,
            hierarchy=ScopeHierarchy.from_direct(self.catalog.scopes),
            hide_unauthorized=_hide_unauthorized(hide_unauthorized, self.catalog),
            description=description,
            branding=declared_members("server", name, icons=icons, websiteUrl=website_url),
            legacy_clients=legacy_clients,
            legacy_tasks=legacy_tasks,
            initial_scopes=initial_scopes,
        )
        self._ports = ports

    @cached_property
    def endpoint(self) -> Endpoint:
        """The endpoint of the front door."""
        catalog, options, features = self.catalog, self._options, self._served()
        scopes = options.first_scopes(catalog.required_scopes)
        needs = {
            "task methods": [name for name, each in catalog.tools.items() if each.task],
            "forwarding": sorted(catalog.owners),
            "page": features.on_page,
        }
        respond = partial(owner_response, catalog, options, self._find_feature)
        return Endpoint(options, features, scopes, needs, respond)

    def _served(self) -> Features:
        catalog = self.catalog
        calls: dict[str, Handler] = {TOOLS_CALL: self._forward_feature}
        if catalog.prompts:
            calls[PROMPTS_GET] = self._forward_feature
        if catalog.resources or catalog.templates:
            calls[RESOURCES_READ] = self._forward_feature
        if len(calls) > 1:
            calls[COMPLETION_COMPLETE] = self._forward_completion
        return Features(
            catalog.tools,
            catalog.prompts,
            catalog.resources,
            catalog.templates,
            calls,
            self._forward,
            self._forward_feature,
            self._read_skills if catalog.skills else None,
            is_constant=True,
        )

    def _read_skills(self) -> SkillMethods:
        from mcp_roundtrip.server.skills import SkillMethods  # a call needs none

        return SkillMethods(self.catalog.skills, self._forward_skill)

    def _forward_skill(self, entry: CatalogEntry, context: RequestContext, uri: str) -> HttpResponse:
        return self._forward(entry, context)

    def lambda_handler(self, event: Any, context: Any) -> Any:
        """Handle a Lambda event: `handler = front_door.lambda_handler`."""
        return handle(self.endpoint, event, context, self._ports)

    # -- forwarding ---------------------------------------------------------------------------------

    def _forward_feature(self, context: RequestContext) -> HttpResponse:
        return self._forward(self._find_feature(context), context)

    def _find_feature(self, context: RequestContext) -> CatalogEntry:
        """Return what a request calls. Raises ProtocolError or InsufficientScope."""
        method = context.request.method
        if method == TOOLS_CALL:
            if context.params.get("name") == ANSWER_TOOL and has_views(self.catalog.tools):
                return self._find_asking_tool(context)
            return find_by_name(self.catalog.tools, context)
        if method == PROMPTS_GET:
            return find_by_name(self.catalog.prompts, context, "prompt")
        return find_by_uri(self._index, read_uri(context.params), context)[0]

    def _find_asking_tool(self, context: RequestContext) -> CatalogEntry:
        """Return the tool whose question a call of the answer tool answers. Raises as `_find_feature`."""
        given = CallParams.read(context.params).arguments.get("tool")
        if not isinstance(given, str) or not shows_apps(context.request.meta.capabilities):
            raise unknown_item("tool", str(given))
        return authorize(self.catalog.tools.get(given), context, lambda: unknown_item("tool", given))

    @cached_property
    def _index(self) -> UriIndex[CatalogEntry]:
        from mcp_roundtrip.protocol.resource_uris import UriIndex, UriTemplate  # tools have no URIs

        return UriIndex((UriTemplate.parse(text), entry) for text, entry in self._resources.items())

    @property
    def _resources(self) -> dict[str, CatalogEntry]:
        return {**self.catalog.resources, **self.catalog.templates}

    def _forward_completion(self, context: RequestContext) -> HttpResponse:
        kind, name = read_reference(context.params)
        items = self.catalog.prompts
        if kind == "resource":
            items, name = self._resources, self._index.find_equivalent(name)
        entry = authorize(items.get(name), context, lambda: unknown_item(kind, name))
        return self._forward(entry, context)

    def _forward(self, entry: CatalogEntry, context: RequestContext) -> HttpResponse:
        if context.invocation.spans is not None:
            context.invocation.spans.forwarded(context.request.method, entry.name)
        try:
            response = forward(
                entry.owner,
                context.ports,
                context.invocation,
                catalog_digest=self.catalog.digests.get(entry.owner),
                server_info=self.info,
                hide_unauthorized=self._options.hide_unauthorized,
            )
        except ForwardingFailed:
            raise forwarding_failed(context.invocation) from None
        context.ports.observer.record(
            "request_forwarded", method=context.request.method, feature=entry.name, owner=entry.owner
        )
        return response


def _hide_unauthorized(chosen: bool | None, catalog: Catalog) -> bool:
    """Return the option `hide_unauthorized`. Raises DefinitionError if the owners differ."""
    if chosen is not None and chosen is not catalog.hides_unauthorized and catalog.required_scopes:
        raise DefinitionError(
            f"FrontDoor(hide_unauthorized={chosen}), and by the catalog the owners' servers do otherwise, "
            f"whom callers can ask at their own paths; write Server(..., hide_unauthorized={chosen}) for "
            "each owner with scopes and run `make catalog`, or remove it from the front door"
        )
    return catalog.hides_unauthorized if chosen is None else chosen
