"""`FrontDoor`, the one public endpoint of many functions.

It serves discovery and the lists from a catalog that a build step writes, and forwards calls, with the event
unchanged, to the function that owns the feature. It also forwards requests for `/tools/<owner>`, the address
of one owner. It runs no code of a feature.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip.auth.callers import InsufficientScope
from mcp_roundtrip.auth.scope_hierarchy import ScopeHierarchy
from mcp_roundtrip.deployment import cold_start_imports, wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.entry.catalog_and_forwarding import (
    Catalog,
    CatalogEntry,
    forward,
    forwarding_failed,
    identify_caller,
    read_unread,
)
from mcp_roundtrip.entry.handler import handle
from mcp_roundtrip.errors import DefinitionError, ProtocolError
from mcp_roundtrip.internal_errors import ForwardingFailed, SettingsError
from mcp_roundtrip.protocol import constants
from mcp_roundtrip.protocol.capabilities import shows_apps
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.protocol.jsonrpc import INVALID_REQUEST
from mcp_roundtrip.protocol.request_validation import InvalidRequest, ValidRequest
from mcp_roundtrip.protocol.resource_uris import UriIndex, UriTemplate
from mcp_roundtrip.protocol.results import LIST_TTL_MS
from mcp_roundtrip.server import admission
from mcp_roundtrip.server.endpoint import Endpoint, error_response
from mcp_roundtrip.server.features_and_app_views import Features
from mcp_roundtrip.server.lambda_invocation import Invocation, log_fault
from mcp_roundtrip.server.options import (
    ANSWER_TOOL,
    PAGE_SIZE,
    LegacyTasks,
    ServerOptions,
    declared_members,
    make_server_info,
)
from mcp_roundtrip.server.request_types import CallParams, Handler, Reply, RequestContext

OWNER_PATHS: Final = "/tools/"
"""The path of an owner is this and its name, behind the base path of the API."""

_WELL_KNOWN: Final = "/.well-known/"


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
        cold_start_imports.prewarm("front_door")
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
        catalog, options, features = self.catalog, self._options, self._served_features()
        scopes = options.first_scopes(catalog.required_scopes)
        needs = {
            "task methods": [name for name, each in catalog.tools.items() if each.task],
            "forwarding": sorted(catalog.owners),
            "page": features.page_tools,
        }
        return Endpoint(options, features, scopes, needs, self._owner_response)

    def _served_features(self) -> Features:
        catalog = self.catalog
        calls: dict[str, Handler] = {constants.TOOLS_CALL: self._forward_feature}
        if catalog.prompts:
            calls[constants.PROMPTS_GET] = self._forward_feature
        if catalog.resources or catalog.templates:
            calls[constants.RESOURCES_READ] = self._forward_feature
        if len(calls) > 1:
            calls[constants.COMPLETION_COMPLETE] = self._forward_completion
        return Features(
            tools=catalog.tools,
            prompts=catalog.prompts,
            resources=catalog.resources,
            templates=catalog.templates,
            calls=calls,
            catalog_skills=catalog.skills,
            forward=self._forward,
        )

    def lambda_handler(self, event: Any, context: Any) -> Any:
        """Handle a Lambda event: `handler = front_door.lambda_handler`."""
        return handle(self.endpoint, event, context, self._ports)

    # -- forwarding ---------------------------------------------------------------------------------

    def _forward_feature(self, context: RequestContext) -> HttpResponse:
        return self._forward(self._find_feature(context), context)

    def _find_feature(self, context: RequestContext) -> CatalogEntry:
        """Return what a request calls. Raises ProtocolError or InsufficientScope."""
        method = context.request.method
        if method == constants.TOOLS_CALL:
            if context.params.get("name") == ANSWER_TOOL and self.endpoint.features.has_views:
                return self._find_asking_tool(context)
            return admission.find_by_name(self.catalog.tools, context)
        if method == constants.PROMPTS_GET:
            return admission.find_by_name(self.catalog.prompts, context, "prompt")
        return admission.find_by_uri(self._index, admission.read_uri(context.params), context)[0]

    def _find_asking_tool(self, context: RequestContext) -> CatalogEntry:
        """Return the tool whose question a call of the answer tool answers. Raises as `_find_feature`."""
        if not shows_apps(context.request.meta.capabilities):
            raise admission.unknown_item("tool", ANSWER_TOOL)
        name = str(CallParams.read(context.params).arguments.get("tool"))
        return admission.authorize(
            self.catalog.tools.get(name), context, lambda: admission.unknown_item("tool", name)
        )

    @cached_property
    def _index(self) -> UriIndex[CatalogEntry]:
        return UriIndex((UriTemplate.parse(text), entry) for text, entry in self._resources.items())

    @property
    def _resources(self) -> dict[str, CatalogEntry]:
        return {**self.catalog.resources, **self.catalog.templates}

    def _forward_completion(self, context: RequestContext) -> HttpResponse:
        kind, name = admission.read_reference(context.params)
        if kind == "prompt":
            found = self.catalog.prompts.get(name)
        else:
            found = self._resources.get(self._index.find_equivalent(name))
        entry = admission.authorize(found, context, lambda: admission.unknown_item(kind, name))
        return self._forward(entry, context)

    def _forward(self, entry: CatalogEntry, context: RequestContext) -> HttpResponse:
        method = context.request.method
        context.invocation.spans.forwarded(method, entry.name)
        try:
            return forward(
                entry.owner,
                context.ports,
                context.invocation,
                {"method": method, "feature": entry.name},
                catalog_digest=self.catalog.digests.get(entry.owner),
                server_info=self.info,
                hide_unauthorized=self._options.hide_unauthorized,
            )
        except ForwardingFailed as error:
            raise forwarding_failed(error, context.invocation) from None

    # -- requests for the paths of owners -----------------------------------------------------------

    def _owner_response(
        self, request: HttpRequest, ports: Ports, invocation: Invocation
    ) -> HttpResponse | None:
        """Return the response to a request for the path of an owner; None for the front door's own paths."""
        owner = self._owner_in_path(request.path, ports)
        if owner is None:
            return None
        try:
            return forward(owner, ports, invocation)
        except (ForwardingFailed, SettingsError) as error:
            unread = read_unread(request, ports)
            if isinstance(unread, ValidRequest):
                self._note_unread_request(unread, request, ports, invocation)
            if isinstance(error, SettingsError):
                raise
            request_id, status = None, None
            if isinstance(unread, (ValidRequest, InvalidRequest)):
                request_id, status = unread.id, 200 if unread.is_legacy else None
            if request.method != "POST":  # a client that looks for metadata evaluates the status
                status = 500
            reply = Reply(forwarding_failed(error, invocation))
            return error_response(request_id, reply, request, ports, invocation, status)

    def _owner_in_path(self, path: str, ports: Ports) -> str | None:
        """Return the owner that a path names; None for the front door's own paths. Raises a 404."""
        before, found, name = path.rpartition(OWNER_PATHS)
        if not found or _WELL_KNOWN in f"{before}/":
            return None
        own = _own_path(ports)
        # Behind a rule for the paths of one owner, `/tools/<owner>/tools/<another>` must not be the other's.
        is_nested = OWNER_PATHS in before and not own.startswith(f"{before}/")
        if name in self.catalog.owners and not is_nested:
            return name
        if own != "/" and f"{path}/".startswith(f"{own}/"):  # behind a base path such as `/tools`
            return None
        raise ProtocolError(INVALID_REQUEST, "There is no such tool", http_status=404)

    def _note_unread_request(
        self, unread: ValidRequest, request: HttpRequest, ports: Ports, invocation: Invocation
    ) -> None:
        """Note for the audit who calls what with a request that had no response."""
        if ports.audit is None:
            return
        try:
            caller = identify_caller(request, ports, invocation)
            context = RequestContext(
                unread, caller.principal, ports, invocation, self._options, None, caller.scopes
            )
            invocation.operation.note_request(context, is_admitted=False)
            if unread.method in constants.FEATURE_KINDS:
                with suppress(ProtocolError, InsufficientScope):
                    self._find_feature(context)
        except Exception as error:  # the response does not depend on the record
            log_fault(ports.observer, error)


def _own_path(ports: Ports) -> str:
    """Return the path of the front door's URI; `/` if it has none."""
    try:
        audience = ports.settings.required("audience")
    except SettingsError:
        return "/"
    return "/" + audience.partition("://")[2].partition("/")[2].rstrip("/")


def _hide_unauthorized(chosen: bool | None, catalog: Catalog) -> bool:
    """Return the option `hide_unauthorized`. Raises DefinitionError if the owners differ."""
    if chosen is not None and chosen is not catalog.hides_unauthorized and catalog.required_scopes:
        raise DefinitionError(
            f"FrontDoor(hide_unauthorized={chosen}), and by the catalog the owners' servers do otherwise, "
            f"whom callers can ask at their own paths; write Server(..., hide_unauthorized={chosen}) for "
            "each owner with scopes and run `make catalog`, or remove it from the front door"
        )
    return catalog.hides_unauthorized if chosen is None else chosen
