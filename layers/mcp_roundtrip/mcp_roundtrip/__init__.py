"""MCP tools on AWS Lambda that can stop and ask, with no server-side state."""

from mcp_roundtrip.engine.async_context import AsyncContext
from mcp_roundtrip.engine.context import Context
from mcp_roundtrip.engine.namespaced import NamespacedRequest
from mcp_roundtrip.engine.questions import (
    Elicit,
    ElicitUrl,
    ListRoots,
    Root,
    Sample,
    Sampled,
)
from mcp_roundtrip.engine.retry import Retry
from mcp_roundtrip.errors import (
    DefinitionError,
    Drift,
    DuplicateKey,
    ElicitationCancelled,
    ElicitationDeclined,
    InvalidKey,
    McpRoundtripError,
    MissingClientCapability,
    ProtocolError,
    StepFailed,
    StepInterrupted,
    Suspend,
    ToolError,
    UsageError,
)
from mcp_roundtrip.principal import Principal
from mcp_roundtrip.schema.choices import one_of
from mcp_roundtrip.schema.content import Audio, EmbeddedResource, Image, ResourceLink, Text
from mcp_roundtrip.server.app import Server
from mcp_roundtrip.server.front_door import FrontDoor

__all__ = [
    "AsyncContext",
    "Audio",
    "Context",
    "DefinitionError",
    "Drift",
    "DuplicateKey",
    "Elicit",
    "ElicitUrl",
    "ElicitationCancelled",
    "ElicitationDeclined",
    "EmbeddedResource",
    "FrontDoor",
    "Image",
    "InvalidKey",
    "ListRoots",
    "McpRoundtripError",
    "MissingClientCapability",
    "NamespacedRequest",
    "Principal",
    "ProtocolError",
    "ResourceLink",
    "Retry",
    "Root",
    "Sample",
    "Sampled",
    "Server",
    "StepFailed",
    "StepInterrupted",
    "Suspend",
    "Text",
    "ToolError",
    "UsageError",
    "one_of",
]
