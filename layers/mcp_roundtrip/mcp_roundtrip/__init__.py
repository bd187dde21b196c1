"""MCP tools on AWS Lambda that can stop and ask, with no server-side state."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.deployment.cold_start import collect_rarely
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
_MODULES = {
    "AsyncContext": "mcp_roundtrip.engine.async_context",
    "Audio": "mcp_roundtrip.content.blocks",
    "Call": "mcp_roundtrip.server.hooks",
    "Completion": "mcp_roundtrip.server.prompts_and_resources",
    "Context": "mcp_roundtrip.engine.context",
    "Elicit": "mcp_roundtrip.engine.elicitation",
    "ElicitUrl": "mcp_roundtrip.engine.elicitation",
    "EmbeddedResource": "mcp_roundtrip.content.blocks",
    "FrontDoor": "mcp_roundtrip.entry.front_door",
    "Image": "mcp_roundtrip.content.blocks",
    "ListRoots": "mcp_roundtrip.engine.sampling_and_roots",
    "McpHeader": "mcp_roundtrip.arguments.mcp_header",
    "NamespacedRequest": "mcp_roundtrip.engine.sampling_and_roots",
    "Principal": "mcp_roundtrip.auth.callers",
    "PromptMessage": "mcp_roundtrip.content.blocks",
    "ResourceContents": "mcp_roundtrip.content.blocks",
    "ResourceLink": "mcp_roundtrip.content.blocks",
    "Retry": "mcp_roundtrip.engine.steps",
    "Root": "mcp_roundtrip.engine.sampling_and_roots",
    "Sample": "mcp_roundtrip.engine.sampling_and_roots",
    "Sampled": "mcp_roundtrip.engine.sampling_and_roots",
    "Server": "mcp_roundtrip.entry.server",
    "Text": "mcp_roundtrip.content.blocks",
    "TraceContext": "mcp_roundtrip.protocol.trace",
    "one_of": "mcp_roundtrip.arguments.elicitation_form",
}

collect_rarely()  # before the imports of these modules, which are most of an initialization


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
