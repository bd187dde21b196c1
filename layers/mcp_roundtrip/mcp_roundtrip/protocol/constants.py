"""Names of the protocol: versions, methods, headers and members of `_meta`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PROTOCOL_VERSION: Final = "2026-07-28"
SUPPORTED_VERSIONS: Final = (PROTOCOL_VERSION,)

LEGACY_VERSION: Final = "2025-11-25"
LEGACY_VERSIONS: Final = (LEGACY_VERSION, "2025-06-18")
"""Versions whose clients open with `initialize`."""

META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""2025-11-25, basic/utilities/tasks "Related Task Metadata"."""

META_TRACEPARENT: Final = "traceparent"
META_TRACESTATE: Final = "tracestate"
META_BAGGAGE: Final = "baggage"
META_TRACE: Final = (META_TRACEPARENT, META_TRACESTATE, META_BAGGAGE)
"""The members of `_meta` with trace context (SEP-414)."""

_LABEL: Final = r"[A-Za-z](?:-*[A-Za-z0-9])*"
META_PREFIX: Final = rf"{_LABEL}(?:\.{_LABEL})*/"
META_NAME: Final = r"(?:[A-Za-z0-9](?:[_.-]*[A-Za-z0-9])*)?"
META_KEY: Final = rf"(?:{META_PREFIX})?{META_NAME}"
"""The patterns of a key of `_meta`, and of its parts, which an extension's name has (basic/index "_meta")."""

URI_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"
URI_REST: Final = r"(?:[^\s\x00-\x1f\x7f\"%<>\\^`{|}\ud800-\udfff]++|%[0-9A-Fa-f]{2})++"
"""The patterns of the two parts of a URI, which may have characters outside of ASCII (RFC 3986)."""

TRACEPARENT: Final = r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
"""The pattern of the span contexts that this package writes (W3C Trace Context 1, version 00)."""

HEADER_PROTOCOL_VERSION: Final = "mcp-protocol-version"
HEADER_METHOD: Final = "mcp-method"
HEADER_NAME: Final = "mcp-name"
HEADER_SESSION_ID: Final = "mcp-session-id"
"""2025-11-25 and 2025-06-18."""

DISCOVER: Final = "server/discover"
TOOLS_LIST: Final = "tools/list"
TOOLS_CALL: Final = "tools/call"
PROMPTS_LIST: Final = "prompts/list"
PROMPTS_GET: Final = "prompts/get"
RESOURCES_LIST: Final = "resources/list"
RESOURCES_TEMPLATES_LIST: Final = "resources/templates/list"
RESOURCES_READ: Final = "resources/read"
COMPLETION_COMPLETE: Final = "completion/complete"
SUBSCRIPTIONS_LISTEN: Final = "subscriptions/listen"
SKILLS_LIST: Final = "skills/list"
SKILLS_GET: Final = "skills/get"
RESOURCES_DIRECTORY_READ: Final = "resources/directory/read"
TASKS_GET: Final = "tasks/get"
TASKS_UPDATE: Final = "tasks/update"
TASKS_CANCEL: Final = "tasks/cancel"

FEATURE_KINDS: Final[Mapping[str, str]] = {
    TOOLS_CALL: "tool",
    PROMPTS_GET: "prompt",
    RESOURCES_READ: "resource",
}
"""The methods that call a feature, with its kind."""

INITIALIZE: Final = "initialize"
PING: Final = "ping"
TASKS_RESULT: Final = "tasks/result"
TASKS_INPUT_RESPONSE: Final = "tasks/input_response"

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""SEP-2663."""

SKILLS_EXTENSION: Final = "io.modelcontextprotocol/skills"
"""SEP-2640."""

UI_EXTENSION: Final = "io.modelcontextprotocol/ui"
UI_MIME_TYPE: Final = "text/html;profile=mcp-app"
"""SEP-1865, MCP Apps."""

NAME_PARAMETER: Final[Mapping[str, str]] = {
    TOOLS_CALL: "name",
    PROMPTS_GET: "name",
    RESOURCES_READ: "uri",
    TASKS_GET: "taskId",
    TASKS_UPDATE: "taskId",
    TASKS_CANCEL: "taskId",
}
"""Method -> the parameter that its `Mcp-Name` header mirrors (SEP-2243; for tasks, SEP-2663)."""

NAME_HEADER_REQUIRED: Final = frozenset({TOOLS_CALL, PROMPTS_GET, RESOURCES_READ})
"""Methods whose requests must have `Mcp-Name`. With `tasks/*` it is optional, and FastMCP 4.1.2 omits it."""

SINGLE_FIELD: Final = "value"
"""The one property of a form that asks for a single value."""

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""From least to most severe (RFC 5424)."""
