"""MCP tools on AWS Lambda that can stop and ask, with no server-side state."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from mcp_roundtrip.deployment.garbage_collection import collect_rarely

if TYPE_CHECKING:
    from mcp_roundtrip.arguments.mcp_header import McpHeader
    from mcp_roundtrip.auth.principal import Principal
    from mcp_roundtrip.content.blocks import Audio, EmbeddedResource, Image, PromptMessage, ResourceLink, Text
    from mcp_roundtrip.content.resource_contents import ResourceContents
    from mcp_roundtrip.engine.async_context import AsyncContext
    from mcp_roundtrip.engine.client_requests import ListRoots, NamespacedRequest, Root, Sample, Sampled
    from mcp_roundtrip.engine.context import Context
    from mcp_roundtrip.engine.elicitation import Elicit, ElicitUrl
    from mcp_roundtrip.engine.steps import Retry
    from mcp_roundtrip.entry.front_door import FrontDoor
    from mcp_roundtrip.entry.server import Server
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
    from mcp_roundtrip.forms.form import one_of
    from mcp_roundtrip.protocol.trace import TraceContext
    from mcp_roundtrip.server.completions import Completion
    from mcp_roundtrip.server.hooks import Call

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

# Each is imported at its first use: a front door needs neither the engine nor pydantic.
_MODULES = {
    "AsyncContext": "mcp_roundtrip.engine.async_context",
    "Audio": "mcp_roundtrip.content.blocks",
    "Call": "mcp_roundtrip.server.hooks",
    "Completion": "mcp_roundtrip.server.completions",
    "Context": "mcp_roundtrip.engine.context",
    "DefinitionError": "mcp_roundtrip.errors",
    "DefinitionWarning": "mcp_roundtrip.errors",
    "Drift": "mcp_roundtrip.errors",
    "DuplicateKey": "mcp_roundtrip.errors",
    "Elicit": "mcp_roundtrip.engine.elicitation",
    "ElicitUrl": "mcp_roundtrip.engine.elicitation",
    "ElicitationCancelled": "mcp_roundtrip.errors",
    "ElicitationDeclined": "mcp_roundtrip.errors",
    "EmbeddedResource": "mcp_roundtrip.content.blocks",
    "FrontDoor": "mcp_roundtrip.entry.front_door",
    "Image": "mcp_roundtrip.content.blocks",
    "InvalidKey": "mcp_roundtrip.errors",
    "ListRoots": "mcp_roundtrip.engine.client_requests",
    "McpHeader": "mcp_roundtrip.arguments.mcp_header",
    "McpRoundtripError": "mcp_roundtrip.errors",
    "MissingClientCapability": "mcp_roundtrip.errors",
    "NamespacedRequest": "mcp_roundtrip.engine.client_requests",
    "NotAwaited": "mcp_roundtrip.errors",
    "Principal": "mcp_roundtrip.auth.principal",
    "PromptMessage": "mcp_roundtrip.content.blocks",
    "ProtocolError": "mcp_roundtrip.errors",
    "ResourceContents": "mcp_roundtrip.content.resource_contents",
    "ResourceLink": "mcp_roundtrip.content.blocks",
    "ResourceNotFound": "mcp_roundtrip.errors",
    "Retry": "mcp_roundtrip.engine.steps",
    "Root": "mcp_roundtrip.engine.client_requests",
    "Sample": "mcp_roundtrip.engine.client_requests",
    "Sampled": "mcp_roundtrip.engine.client_requests",
    "Server": "mcp_roundtrip.entry.server",
    "StepFailed": "mcp_roundtrip.errors",
    "StepInterrupted": "mcp_roundtrip.errors",
    "Suspend": "mcp_roundtrip.errors",
    "Text": "mcp_roundtrip.content.blocks",
    "ToolError": "mcp_roundtrip.errors",
    "TraceContext": "mcp_roundtrip.protocol.trace",
    "UsageError": "mcp_roundtrip.errors",
    "one_of": "mcp_roundtrip.forms.form",
}

collect_rarely()  # before the imports of these modules, which are most of an initialization


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
