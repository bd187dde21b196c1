"""MCP tools on AWS Lambda that can stop and ask, with no server-side state."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.deployment.cold_start_imports import collect_rarely
from mcp_roundtrip.errors import (
    DefinitionError,
    DefinitionWarning,
    Drift,
    DuplicateKey,
    ElicitationCancelled,
    ElicitationDeclined,
    InvalidKey,
    McpRoundtripError,
    MissingClientCapability,
    NotAwaited,
    ProtocolError,
    ResourceNotFound,
    StepFailed,
    StepInterrupted,
    Suspend,
    ToolError,
    UsageError,
)

if TYPE_CHECKING:
    from mcp_roundtrip.arguments.elicitation_form import one_of
    from mcp_roundtrip.arguments.mcp_header import McpHeader
    from mcp_roundtrip.auth.callers import Principal
    from mcp_roundtrip.content.blocks import (
        Audio,
        EmbeddedResource,
        Image,
        PromptMessage,
        ResourceContents,
        ResourceLink,
        Text,
    )
    from mcp_roundtrip.engine.async_context import AsyncContext
    from mcp_roundtrip.engine.context import Context
    from mcp_roundtrip.engine.elicitation import Elicit, ElicitUrl
    from mcp_roundtrip.engine.sampling_and_roots import ListRoots, NamespacedRequest, Root, Sample, Sampled
    from mcp_roundtrip.engine.steps import Retry
    from mcp_roundtrip.entry.front_door import FrontDoor
    from mcp_roundtrip.entry.server import Server
    from mcp_roundtrip.protocol.trace import TraceContext
    from mcp_roundtrip.server.hooks import Call
    from mcp_roundtrip.server.prompts_and_resources import Completion

__all__ = [
    "AsyncContext",
    "Audio",
    "Call",
    "Completion",
    "Context",
    "DefinitionError",
    "DefinitionWarning",
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
    "McpHeader",
    "McpRoundtripError",
    "MissingClientCapability",
    "NamespacedRequest",
    "NotAwaited",
    "Principal",
    "PromptMessage",
    "ProtocolError",
    "ResourceContents",
    "ResourceLink",
    "ResourceNotFound",
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
    "TraceContext",
    "UsageError",
    "one_of",
]

# Each of these is imported at its first use: a front door needs neither the engine nor pydantic.
_NAMES = {
    "arguments.elicitation_form": "one_of",
    "arguments.mcp_header": "McpHeader",
    "auth.callers": "Principal",
    "content.blocks": "Audio EmbeddedResource Image PromptMessage ResourceContents ResourceLink Text",
    "engine.async_context": "AsyncContext",
    "engine.context": "Context",
    "engine.elicitation": "Elicit ElicitUrl",
    "engine.sampling_and_roots": "ListRoots NamespacedRequest Root Sample Sampled",
    "engine.steps": "Retry",
    "entry.front_door": "FrontDoor",
    "entry.server": "Server",
    "protocol.trace": "TraceContext",
    "server.hooks": "Call",
    "server.prompts_and_resources": "Completion",
}
_MODULES = {name: f"{__name__}.{module}" for module, names in _NAMES.items() for name in names.split()}

collect_rarely()  # before the imports of these modules, which are most of an initialization


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
