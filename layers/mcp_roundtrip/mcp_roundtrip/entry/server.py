"""`Server`, which an author's module creates, and whose `lambda_handler` is the Lambda function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.auth.callers import Principal, user_binding
from mcp_roundtrip.auth.scope_hierarchy import ScopeHierarchy
from mcp_roundtrip.deployment import cold_start_imports, wiring
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.entry.handler import handle, make_ports_or_log
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.protocol.constants import COMPLETION_COMPLETE, PROMPTS_GET, RESOURCES_READ, TOOLS_CALL
from mcp_roundtrip.protocol.results import LIST_TTL_MS
from mcp_roundtrip.server.call_rounds import run_call
from mcp_roundtrip.server.decorator_options import check_scopes
from mcp_roundtrip.server.endpoint import Endpoint
from mcp_roundtrip.server.features_and_app_views import Features
from mcp_roundtrip.server.options import (
    ANSWER_TOOL,
    DEFAULT_CHANNELS,
    PAGE_SIZE,
    Fallback,
    LegacyTasks,
    ServerOptions,
    declared_members,
    make_server_info,
)
from mcp_roundtrip.server.registry import Registry
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext
from mcp_roundtrip.server.tools import ServerTools, with_status

if TYPE_CHECKING:
    from mcp_roundtrip.server.lists import Listable
    from mcp_roundtrip.state.url_elicitation_links import Link


class Server(Registry):
    """A complete MCP server on one Lambda function.

    `name`, `version`, `title`: the name of the server in results; `instructions` tell models how to use it.
    `icons`, `website_url`: what a client shows of the server. Only `server/discover`, `initialize` and the
    Server Card have them.
    `description`: what the server does, in at most 100 characters, for its Server Card.
    `namespaced_requests`: whether tools may use `ctx.request`.
    `channels`: how to ask the questions that a client cannot show, in this order: "app" (a form in an MCP
    App), "page" (a link to a form on the endpoint), "model" (the model asks), "default" (their defaults).
    `lenient_arguments`: reads JSON that models send as text, and drops unknown arguments (see `tool`).
    `legacy_clients`: whether clients of 2025-06-18 and 2025-11-25 are served.
    `legacy_tasks`: "sep-2322" lets clients of 2025-11-25 use tasks in the dialect of SEP-2322.
    `page_size`, `list_ttl_ms`: items per page of a list, and how long clients may cache it.
    `scopes`: which narrower scopes a scope implies.
    `initial_scopes`: the scopes that clients should request first; by default the narrowest ones.
    `hide_unauthorized`: whether features that the caller may not use are neither listed nor known.
    `ports`: replaces the environment in tests.

    Raises DefinitionError for values that are not allowed.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "1.0.0",
        title: str | None = None,
        instructions: str | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        website_url: str | None = None,
        description: str | None = None,
        namespaced_requests: bool = False,
        channels: Sequence[Fallback] = DEFAULT_CHANNELS,
        lenient_arguments: bool = False,
        legacy_clients: bool = True,
        legacy_tasks: LegacyTasks | None = None,
        page_size: int = PAGE_SIZE,
        list_ttl_ms: int = LIST_TTL_MS,
        scopes: Mapping[str, Sequence[str]] | None = None,
        initial_scopes: Sequence[str] | None = None,
        hide_unauthorized: bool = False,
        ports: Callable[[], Ports] = wiring.ports,
    ) -> None:
        cold_start_imports.prewarm("server")
        super().__init__(name, channels, lenient_arguments=lenient_arguments)
        self.info: Mapping[str, Any] = make_server_info(name, version, title)
        self._ports = ports
        self.scopes: Mapping[str, Sequence[str]] = scopes or {}
        self.options = ServerOptions(
            self.info,
            instructions,
            namespaced_requests=namespaced_requests,
            page_size=page_size,
            list_ttl_ms=list_ttl_ms,
            hierarchy=ScopeHierarchy.from_direct(self.scopes),
            hide_unauthorized=hide_unauthorized,
            description=description,
            hooks=self.hooks,
            branding=declared_members("server", name, icons=icons, websiteUrl=website_url),
            legacy_clients=legacy_clients,
            legacy_tasks=legacy_tasks,
            initial_scopes=initial_scopes,
        )
        self.skill_folders: dict[Path, tuple[str, ...]] = {}
        self._server_tools = ServerTools(self.options, self.tools)

    @cached_property
    def endpoint(self) -> Endpoint:
        """The endpoint of this server, for requests that are no Lambda events."""
        features = self._served_features()
        required = [scope for feature in self.features for scope in feature.scopes]
        required += [scope for scopes in self.skill_folders.values() for scope in scopes]
        needs = {
            "tasks": [tool.name for tool in self.tools.values() if tool.task],
            "states": [each.name for each in self.features if each.asks],
            "scopes": [each.name for each in self.features if each.scopes],
            "page": features.page_tools,
        }
        return Endpoint(self.options, features, self.options.first_scopes(required), needs)

    def _served_features(self) -> Features:
        calls: dict[str, Handler] = {TOOLS_CALL: self._call_tool}
        static: Mapping[str, Listable] = {}
        templates: Mapping[str, Listable] = {}
        if self.prompts or self.resources:
            others = self.prompts_and_resources
            static, templates = others.static, others.templates
            calls[COMPLETION_COMPLETE] = others.complete
        if self.prompts:
            calls[PROMPTS_GET] = self._get_prompt
        if self.resources:
            calls[RESOURCES_READ] = self._read_resource
        return Features(
            tools=self.tools,
            prompts=self.prompts,
            resources=static,
            templates=templates,
            calls=calls,
            skill_folders=self.skill_folders,
        )

    def _get_prompt(self, context: RequestContext) -> Reply:
        return run_call(self.prompts_and_resources.find_prompt(context))

    def _read_resource(self, context: RequestContext) -> Reply:
        return run_call(self.prompts_and_resources.find_resource(context))

    def _call_tool(self, context: RequestContext) -> Reply:
        if context.params.get("name") == ANSWER_TOOL and self.endpoint.features.has_views:
            call = self._server_tools.find_answered_call(context)
            return call if isinstance(call, Reply) else with_status(run_call(call))
        return run_call(self._server_tools.find_call(context))

    def skills(self, folder: Path, *, scopes: Sequence[str] = ()) -> None:
        """Serve the skills in a folder (SEP-2640); `make catalog` writes their manifest beside it.

        `scopes`: a caller without all of them, or broader ones, gets HTTP 403. Raises DefinitionError.
        """
        if not isinstance(folder, Path) or folder in self.skill_folders:
            raise DefinitionError(
                f"server.skills({folder!r:.100}) is no path, or there twice; "
                'write server.skills(Path(__file__).with_name("skills")) once'
            )
        self.skill_folders[folder] = check_scopes("server.skills", scopes)

    def lambda_handler(self, event: Any, context: Any) -> Any:
        """Handle a Lambda event: `handler = server.lambda_handler`."""
        return handle(self.endpoint, event, context, self._ports)

    def worker_handler(self, event: Any, context: Any) -> Any:
        """Handle an event of the worker function, which runs the tasks of this server and has no route."""
        from mcp_roundtrip.entry.worker import work  # requests need no worker

        return work(self._server_tools, event, context, make_ports_or_log(self._ports, context))

    def open_link(self, token: str, principal: Principal | None) -> Link:
        """Verify the token of a URL from `ctx.signed_link`, for the page behind that URL.

        `principal` is the user whom the page itself has signed in, with the kind, issuer and subject of the
        caller; `client_id` is ignored. Raises StateRejected, also for a link of another user
        (client/elicitation "Phishing").
        """
        return self._ports().links().open(user_binding(principal), token)
