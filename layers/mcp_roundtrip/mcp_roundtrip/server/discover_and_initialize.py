"""What clients read of a server when they connect: `server/discover`, `initialize`, and the lists (`lists`).

`subscriptions/listen` is declined: a Lambda function cannot hold a stream open, and nothing would notify it
of changes. The stream is an acknowledgement that accepts none of the notification types, then the result that
ends the subscription gracefully (basic/patterns/subscriptions, "Graceful Closure"). A client that does not
accept `text/event-stream` gets the result only.

The methods of 2025-11-25 and 2025-06-18 are those of the later versions, with the results that these versions
have. They are served without sessions: see `protocol.session_id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mcp_roundtrip.arguments.mcp_header import KEYWORD
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.protocol import constants, jsonrpc, results
from mcp_roundtrip.protocol.capabilities import TASKS, shows_apps, version_has_tasks
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.jsonrpc import invalid_params
from mcp_roundtrip.protocol.request_validation import unknown_method
from mcp_roundtrip.protocol.results import call_tool_result
from mcp_roundtrip.protocol.session_id import NONCE_BYTES, SessionId
from mcp_roundtrip.server.admission import require_capabilities
from mcp_roundtrip.server.call_plan import ClientAbilities, Plan
from mcp_roundtrip.server.features_and_app_views import Features
from mcp_roundtrip.server.lists import FeatureList, ToolList
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.request_types import Handler, Reply, RequestContext

ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
META_SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"

SKILL_METHODS: Final = (constants.SKILLS_LIST, constants.SKILLS_GET, constants.RESOURCES_DIRECTORY_READ)
"""The methods of SEP-2640."""

TASK_IDS: Final = "taskIds"
"""SEP-2663, "Task Status Notifications"."""


class Discovery(Struct, frozen=True, dict=True):  # dict: the handlers and lists are created once
    """The methods of a server with these features, apart from those that name a feature."""

    options: ServerOptions
    features: Features

    @cached_property
    def handlers(self) -> Mapping[str, Handler]:
        features = self.features
        found: dict[str, Handler] = {
            constants.DISCOVER: self._discover,
            constants.SUBSCRIPTIONS_LISTEN: decline_subscription,
            constants.TOOLS_LIST: ToolList(features.tools),
            **self._lists(),
        }
        if features.has_skills:
            found |= dict.fromkeys(SKILL_METHODS, self._serve_skill)
        return found

    def _lists(self) -> dict[str, Handler]:
        features, lists = self.features, dict[str, Handler]()
        if features.prompts:
            lists[constants.PROMPTS_LIST] = FeatureList("prompts", features.prompts)
        if features.has_resources:
            lists[constants.RESOURCES_LIST] = self._list_resources
            lists[constants.RESOURCES_TEMPLATES_LIST] = FeatureList("resourceTemplates", features.templates)
        elif features.has_views:  # which lists omit
            lists[constants.RESOURCES_LIST] = partial(_list_nothing, "resources")
            lists[constants.RESOURCES_TEMPLATES_LIST] = partial(_list_nothing, "resourceTemplates")
        return lists

    def _list_resources(self, context: RequestContext) -> Reply:
        return self._resource_list(context)

    @cached_property
    def _resource_list(self) -> FeatureList:
        features = self.features
        files = features.skills.skill_files() if features.has_skills else {}
        return FeatureList("resources", {**features.resources, **files})

    def _serve_skill(self, context: RequestContext) -> Reply | HttpResponse:
        return self.features.skills.handlers[context.request.method](context)

    @cached_property
    def legacy_handlers(self) -> Mapping[str, Handler]:
        """The handlers for clients that open with `initialize`, which do not have those of skills."""
        features = self.features
        later = {**features.call_handlers, **self._lists()}
        found: dict[str, Handler] = {
            **{method: partial(_adapt, handler) for method, handler in later.items()},
            constants.INITIALIZE: self._initialize,
            constants.PING: _ping,
            constants.TOOLS_LIST: partial(_adapt, self._list_legacy_tools),
        }
        if self.options.legacy_tasks is not None:
            from mcp_roundtrip.server import legacy_tasks  # off by default

            if features.forward is None:  # otherwise the owner of the tool adapts the call
                call_tool = partial(legacy_tasks.call_tool, later[constants.TOOLS_CALL], features.tools)
                found[constants.TOOLS_CALL] = partial(_adapt, call_tool)
            of_tasks = legacy_tasks.TASK_HANDLERS
            found |= {method: partial(self._call_with_tasks, each) for method, each in of_tasks.items()}
        return found

    def _call_with_tasks(self, handler: Handler, context: RequestContext) -> Reply | HttpResponse:
        has_tasks = version_has_tasks(context.request.meta.protocol_version)
        if not (has_tasks and self.features.serves_tasks(context)):
            raise unknown_method(context.request.method)
        return handler(context)

    @property
    def _has_dialect(self) -> bool:
        return self.options.legacy_tasks is not None and self.features.has_tasks

    def _list_legacy_tools(self, context: RequestContext) -> Reply:
        knows_tasks = self._has_dialect and version_has_tasks(context.request.meta.protocol_version)
        return self._legacy_tools[knows_tasks](context)

    @cached_property
    def _legacy_tools(self) -> Mapping[bool, ToolList]:
        """The lists for clients that know tasks, and for others."""
        return {each: _LegacyToolList(self.features.tools, knows_tasks=each) for each in (True, False)}

    def _capabilities(self) -> dict[str, Any]:
        features = self.features
        declared = {
            "tools": True,
            "prompts": features.prompts,
            "resources": features.has_resources,
            "completions": constants.COMPLETION_COMPLETE in features.calls,
        }
        return {capability: {} for capability, has_any in declared.items() if has_any}

    def _discover(self, context: RequestContext) -> Reply:
        options = self.options
        # `logging`, because any feature may send log messages to a client that requests them.
        capabilities = {**self._capabilities(), "logging": {}}
        extensions: dict[str, Any] = {constants.TASKS_EXTENSION: {}} if self.features.has_tasks else {}
        if self.features.has_skills:
            extensions[constants.SKILLS_EXTENSION] = {"directoryRead": True}
        if extensions:
            capabilities["extensions"] = extensions
        is_varied = self.features.has_views
        if is_varied and shows_apps(context.request.meta.capabilities):
            capabilities = _with_views(capabilities)
        result = results.cacheable(
            options.implementation,
            options.list_ttl_ms,
            is_private=is_varied,
            supportedVersions=list(constants.SUPPORTED_VERSIONS),
            capabilities=capabilities,
            **self._instructions(),
        )
        return Reply(result)

    def _instructions(self) -> dict[str, str]:
        instructions = self.options.instructions
        return {} if instructions is None else {"instructions": instructions}

    def _initialize(self, context: RequestContext) -> Reply:
        requested = _requested_version(context.params)
        version = requested if requested in constants.LEGACY_VERSIONS else constants.LEGACY_VERSION
        # No `logging`: the level that `logging/setLevel` sets would have to be stored. A client that names a
        # level in `_meta`, as those of 2026-07-28 do, gets log messages.
        capabilities = self._capabilities()
        if self._has_dialect and version_has_tasks(version):
            capabilities["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        if self.features.has_views and shows_apps(context.params["capabilities"]):
            capabilities = _with_views(capabilities)
        options = self.options
        result = {
            "protocolVersion": version,
            "capabilities": capabilities,
            "serverInfo": options.implementation,
            **self._instructions(),
        }
        # The session id holds what the client declares with this request.
        params, random = context.params, context.ports.random_bytes(NONCE_BYTES)
        log_level = context.request.meta.log_level
        session = SessionId.create(version, params["clientInfo"], params["capabilities"], random, log_level)
        session_id = session.encode()
        return Reply(result, headers={} if session_id is None else {constants.HEADER_SESSION_ID: session_id})


def _with_views(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """Add what a server with views declares: `resources/read`, and forms in views (draft SEP-3118)."""
    extensions = {**capabilities.get("extensions", {}), constants.UI_EXTENSION: {"elicitation": {}}}
    return {"resources": {}, **capabilities, "extensions": extensions}


def _list_nothing(member: str, context: RequestContext) -> Reply:
    """Return an empty list to clients that show MCP Apps: they read views, which lists omit."""
    if not shows_apps(context.request.meta.capabilities):
        raise unknown_method(context.request.method)
    options = context.options
    members: dict[str, Any] = {member: []}
    return Reply(results.cacheable(options.server_info, options.list_ttl_ms, **members))


def decline_subscription(context: RequestContext) -> Reply:
    """End a subscription gracefully. Raises ProtocolError -32602 or MissingClientCapability."""
    requested = context.params.get("notifications")
    if not isinstance(requested, dict):
        raise invalid_params("notifications must be an object")
    if requested.get(TASK_IDS) is not None:
        require_capabilities(context, [TASKS])
    tag = {META_SUBSCRIPTION_ID: context.request.id}
    acknowledged = jsonrpc.notification(ACKNOWLEDGED, {"_meta": tag, "notifications": {}})
    meta = {**tag, constants.META_SERVER_INFO: context.options.server_info}
    return Reply({"resultType": "complete", "_meta": meta}, (acknowledged,), {"outcome": "declined"})


# -- earlier versions ---------------------------------------------------------------------------------------

_LATER_MEMBERS: Final = frozenset({"ttlMs", "cacheScope"})
"""Members of results that these versions do not have."""


_INITIALIZE_MEMBERS: Final = (
    ("protocolVersion", str, f'a string such as "{constants.LEGACY_VERSION}"'),
    ("capabilities", dict, "an object"),
    ("clientInfo", dict, "an object with name and version"),
)


def _requested_version(params: Mapping[str, Any]) -> str:
    """Return `protocolVersion` of an InitializeRequest. Raises ProtocolError -32602."""
    for name, kind, expected in _INITIALIZE_MEMBERS:
        if not isinstance(params.get(name), kind):
            raise invalid_params(f"initialize needs {name}, {expected}")
    version: str = params["protocolVersion"]
    return version


def _ping(context: RequestContext) -> Reply:
    return Reply({})


def _adapt(handler: Handler, context: RequestContext) -> Reply | HttpResponse:
    """Call a handler of the later versions, and return a reply that these versions have."""
    reply = handler(context)
    # The function that owns a feature has written its own response.
    if isinstance(reply, HttpResponse) or isinstance(reply.body, ProtocolError):
        return reply
    later = _LATER_MEMBERS | ({"resultType"} if reply.body.get("resultType") == "complete" else set())
    members = call_tool_result(reply.body).items()
    return replace(reply, body={name: member for name, member in members if name not in later})


class _LegacyToolList(ToolList):
    knows_tasks: bool = False

    def definition(self, name: str, client: ClientAbilities, plan: Plan) -> dict[str, Any]:
        members = super().definition(name, client, plan)
        # Structured content is an object in these versions, so an output schema of another type has no place.
        if members.get("outputSchema", {}).get("type") != "object":
            members.pop("outputSchema", None)
        members["inputSchema"] = _without_headers(members["inputSchema"])
        if self.knows_tasks and (task := self.tools[name].task) is not None:
            members["execution"] = {"taskSupport": task}
        return members


def _without_headers(schema: Any) -> Any:
    """Leave out `x-mcp-header`: these versions do not have it, and Ajv refuses unknown keywords."""
    if not isinstance(schema, dict):
        return schema
    members = {keyword: value for keyword, value in schema.items() if keyword != KEYWORD}
    if isinstance(properties := schema.get("properties"), dict):
        members["properties"] = {name: _without_headers(each) for name, each in properties.items()}
    return members
