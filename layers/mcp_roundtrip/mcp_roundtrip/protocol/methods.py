"""Tables of what the protocol calls things: methods, headers, reserved names."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

PROTOCOL_VERSION: Final = "2026-07-28"
SUPPORTED_VERSIONS: Final = (PROTOCOL_VERSION,)

LEGACY_VERSION: Final = "2025-11-25"
LEGACY_VERSIONS: Final = (LEGACY_VERSION, "2025-06-18")
"""Versions that begin with `initialize`: an endpoint has handlers for them, or refuses them."""

META_PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_INFO: Final = "io.modelcontextprotocol/clientInfo"
META_CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
META_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
META_RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""2025-11-25, basic/utilities/tasks "Related Task Metadata"."""

HEADER_PROTOCOL_VERSION: Final = "mcp-protocol-version"
HEADER_METHOD: Final = "mcp-method"
HEADER_NAME: Final = "mcp-name"

DISCOVER: Final = "server/discover"
TOOLS_LIST: Final = "tools/list"
TOOLS_CALL: Final = "tools/call"
TASKS_GET: Final = "tasks/get"
TASKS_UPDATE: Final = "tasks/update"
TASKS_CANCEL: Final = "tasks/cancel"

INITIALIZE: Final = "initialize"
PING: Final = "ping"
TASKS_RESULT: Final = "tasks/result"
TASKS_INPUT_RESPONSE: Final = "tasks/input_response"

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""SEP-2663."""

NAME_PARAMETER: Final[Mapping[str, str]] = MappingProxyType(
    {
        TOOLS_CALL: "name",
        "prompts/get": "name",
        "resources/read": "uri",
        TASKS_GET: "taskId",
        TASKS_UPDATE: "taskId",
        TASKS_CANCEL: "taskId",
    }
)
"""Method -> the parameter that `Mcp-Name` mirrors (SEP-2243; for tasks SEP-2663)."""

NAME_HEADER_REQUIRED: Final = frozenset({TOOLS_CALL, "prompts/get", "resources/read"})
"""Methods whose request must carry `Mcp-Name`."""

LOG_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""Least to most severe (RFC 5424)."""
