"""What an author's module holds: a `Server`, whose `lambda_handler` is the Lambda function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from mcp_roundtrip import wiring
from mcp_roundtrip.canonical import compact_json
from mcp_roundtrip.entry.handler import handle, logged
from mcp_roundtrip.errors import DefinitionError
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.principal import Principal, user_binding
from mcp_roundtrip.protocol.methods import TOOLS_CALL
from mcp_roundtrip.protocol.results import LIST_TTL_MS
from mcp_roundtrip.server.endpoint import Endpoint, capabilities, discovery
from mcp_roundtrip.server.model import PAGE_SIZE, Guarded, Handler, ServerOptions
from mcp_roundtrip.server.registry import Registry
from mcp_roundtrip.server.tools import LegacyQuestions, ToolServer

if TYPE_CHECKING:
    from mcp_roundtrip.auth.scopes import ScopeHierarchy
    from mcp_roundtrip.state.links import Link


LegacyTasks = Literal["sep-2322"]
"""Which dialect of tasks clients of 2025-11-25 are served."""

MAX_SERVER_INFO: Final = 2_000
"""Bytes of JSON that a server's name, version and title may take: every response carries them."""


class Server(Registry):
    """A complete MCP server on one Lambda function.

    `name`, `version` and `title` are what it calls itself; `instructions` tell models how to use it.
    `namespaced_requests` lets its tools use `ctx.request`. Lists come in pages of `page_size`, and clients
    may keep them for `list_ttl_ms`. Clients of 2025-06-18 and 2025-11-25 are served too, unless
    `legacy_clients` is off; `legacy_questions` says what becomes of questions that they cannot be asked, and
    with `legacy_tasks="sep-2322"` they ask for tasks in the dialect that SEP-2322 describes. `scopes` says
    which narrower scopes a scope implies, `initial_scopes` which ones clients should ask for at first (by
    default the narrowest that any feature needs); with `hide_unauthorized`, what a caller's scopes do not
    suffice for is neither listed nor known. `ports` replaces what the environment provides, in tests. Raises
    DefinitionError for choices that do not exist.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "1.0.0",
        title: str | None = None,
        instructions: str | None = None,
        namespaced_requests: bool = False,
        legacy_clients: bool = True,
        legacy_questions: LegacyQuestions = "error",
        legacy_tasks: LegacyTasks | None = None,
        page_size: int = PAGE_SIZE,
        list_ttl_ms: int = LIST_TTL_MS,
        scopes: Mapping[str, Sequence[str]] | None = None,
        initial_scopes: Sequence[str] | None = None,
        hide_unauthorized: bool = False,
        ports: Callable[[], Ports] = wiring.ports,
    ) -> None:
        wiring.prewarm()
        super().__init__(legacy_questions)
        self.info: Mapping[str, Any] = server_info(name, version, title)
        self._ports = ports
        self._legacy_clients = legacy_clients
        self._legacy_tasks = known_dialect(legacy_tasks, legacy_clients)
        self.scopes: Mapping[str, Sequence[str]] = scopes or {}
        self.hide_unauthorized = hide_unauthorized
        self._initial_scopes = checked_scopes(initial_scopes)
        self._options = ServerOptions(
            self.info,
            instructions,
            namespaced_requests,
            page_size,
            list_ttl_ms,
            hierarchy(self.scopes),
            hide_unauthorized,
        )
        self._tool_server = ToolServer(self._options, self.tools)

    @cached_property
    def endpoint(self) -> Endpoint:
        """The server's methods, for whoever brings requests that are no Lambda events."""
        return assembled(
            self._options,
            self._features,
            self._legacy_handlers if self._legacy_clients else None,
            initial_scopes(self._initial_scopes, self._options, self.tools, self.prompts, self.resources),
            has_tasks=self._tool_server.has_tasks,
        )

    @cached_property
    def _features(self) -> dict[str, dict[str, Handler]]:
        """The methods of each capability that is used."""
        return {"tools": self._tool_server.handlers(), **self._further_features()}

    def _further_features(self) -> dict[str, dict[str, Handler]]:
        found: dict[str, dict[str, Handler]] = {}
        if self.prompts:
            from mcp_roundtrip.server.prompts import PromptServer

            found["prompts"] = PromptServer(self._options, self.prompts).handlers()
        if self.resources:
            from mcp_roundtrip.server.resources import ResourceServer

            found["resources"] = ResourceServer(self._options, self.resources).handlers()
        if self.prompts or self.resources:
            from mcp_roundtrip.server.completions import Completable, CompletionServer, Reference

            prompts = {("prompt", name): prompt for name, prompt in self.prompts.items()}
            resources = {("resource", uri): resource for uri, resource in self.resources.items()}
            features: dict[Reference, Completable] = {**prompts, **resources}
            found["completions"] = CompletionServer(self._options, features, self.completers).handlers()
        return found

    def _legacy_handlers(self) -> Mapping[str, Handler]:
        from mcp_roundtrip.server.legacy.methods import LegacyServer  # at the first request of that era

        features, tasks = self._features, {}
        if self._legacy_tasks is not None:
            from mcp_roundtrip.server.legacy.sep_2322 import ToolCalls, task_methods  # off by default

            features = {**features, "tools": {TOOLS_CALL: ToolCalls(self._tool_server).answer}}
            tasks = task_methods() if self._tool_server.has_tasks else {}
        return LegacyServer(self._options, features, self.tools, self.legacy_questions, tasks).handlers()

    def lambda_handler(self, event: Any, context: Any) -> Any:
        """The Lambda handler: `handler = server.lambda_handler`."""
        return handle(self.endpoint, event, context, self._ports)

    def worker_handler(self, event: Any, context: Any) -> Any:
        """The Lambda handler of the function that works on this server's tasks: it has no route."""
        from mcp_roundtrip.entry.worker import work  # requests do without it

        return work(self._tool_server, event, context, lambda: logged(self._ports, context))

    def open_link(self, token: str, principal: Principal | None) -> Link:
        """Check a token that `ctx.signed_link` put into a URL, for the page behind it.

        `principal` is the user whom that page has signed in itself, with the kind, issuer and subject of the
        caller; `client_id` does not count. A link for another user is refused (client/elicitation
        "Phishing"). Raises StateRejected.
        """
        return self._ports().links().open(user_binding(principal), token)


def assembled(
    options: ServerOptions,
    features: Mapping[str, Mapping[str, Handler]],
    legacy_handlers: Callable[[], Mapping[str, Handler]] | None,
    scopes: Sequence[str],
    *,
    has_tasks: bool,
) -> Endpoint:
    """The endpoint with the methods of these capabilities, and with those that every server has.

    `legacy_handlers` is called at the first request of the `initialize` era; None where that is not served.
    """
    handlers = discovery(options, capabilities(*features, has_tasks=has_tasks))
    for methods in features.values():
        handlers |= methods
    if has_tasks:
        from mcp_roundtrip.server.task_methods import TaskMethods  # servers without tasks do without it

        handlers |= TaskMethods(options.server_info).handlers()
    name = options.server_info.get("title") or options.server_info["name"]
    return Endpoint(handlers, None if legacy_handlers is None else cache(legacy_handlers), name, scopes)


def known_dialect(legacy_tasks: LegacyTasks | None, legacy_clients: bool) -> LegacyTasks | None:
    """The setting `legacy_tasks`. Raises DefinitionError."""
    if legacy_tasks is not None and not legacy_clients:
        raise DefinitionError("legacy_tasks= is set with legacy_clients=False; remove one of them")
    if legacy_tasks not in (None, "sep-2322"):
        raise DefinitionError(f'legacy_tasks={legacy_tasks!r} does not exist; use "sep-2322" or None')
    return legacy_tasks


def hierarchy(scopes: Mapping[str, Sequence[str]]) -> ScopeHierarchy | None:
    """What the setting `scopes` says. Raises DefinitionError."""
    if not scopes:
        return None
    from mcp_roundtrip.auth.scopes import ScopeHierarchy  # servers without scopes do without it

    return ScopeHierarchy.of(scopes)


def checked_scopes(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """The setting `initial_scopes`. Raises DefinitionError."""
    if given is None:
        return None
    from mcp_roundtrip.auth.scopes import validate_scopes  # as above

    return validate_scopes(given)


def initial_scopes(
    chosen: tuple[str, ...] | None, options: ServerOptions, *features: Mapping[str, Guarded]
) -> tuple[str, ...]:
    """What clients should ask for at first: if nobody chose, the narrowest scopes that a feature needs."""
    needed = {scope for each in features for feature in each.values() for scope in feature.scopes}
    if chosen is not None or not needed:
        return chosen or ()
    from mcp_roundtrip.auth.scopes import ScopeHierarchy  # as above

    return (options.hierarchy or ScopeHierarchy()).narrowest(needed)


def server_info(name: str, version: str, title: str | None) -> dict[str, Any]:
    """The Implementation object that every result carries. Raises DefinitionError for a long one."""
    info = {"name": name, "version": version} | ({} if title is None else {"title": title})
    # Lambda takes 3,583 characters of client context, in Base64, and a forwarded call has more to tell there.
    if len(compact_json(info)) > MAX_SERVER_INFO:
        raise DefinitionError(
            f"name, version and title of the server have more than {MAX_SERVER_INFO} bytes of JSON; "
            "use shorter ones"
        )
    return info
