"""Prompts: messages that a user selects by name (server/prompts)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar

from msgspec import Struct, field

from mcp_roundtrip.arguments.string_arguments import StringArguments
from mcp_roundtrip.content.blocks import prompt_messages
from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError, ToolError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.server.admission import find_by_name
from mcp_roundtrip.server.errors import feature_error
from mcp_roundtrip.server.lists import FeatureList
from mcp_roundtrip.server.model import CallParams, FeatureCall, RequestContext
from mcp_roundtrip.server.options import Fallback


class Prompt(Struct, frozen=True):
    """A registered prompt: a `Feature`. `extra` holds further members of its definition."""

    name: str
    function: Callable[..., Any]
    parameters: StringArguments
    requires: tuple[CapabilityPath, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    channels: tuple[Fallback, ...] = ()

    kind: ClassVar[str] = "prompt"
    task: ClassVar[None] = None
    form_view_uri: ClassVar[None] = None

    def definition(self) -> dict[str, Any]:
        """Build the Prompt object of `prompts/list`."""
        members: dict[str, Any] = {"name": self.name}
        if self.parameters.description:
            members["description"] = self.parameters.description
        if self.parameters.names:
            members["arguments"] = [self._argument(name) for name in self.parameters.names]
        return {**members, **self.extra}

    def _argument(self, name: str) -> dict[str, Any]:
        whole = self.parameters.json_schema()
        schema = whole["properties"][name]
        described = {key: schema[key] for key in ("title", "description") if key in schema}
        return {"name": name, **described, "required": name in whole.get("required", ())}

    def result(self, call: FeatureCall, value: Any) -> dict[str, Any]:
        """Build the GetPromptResult for a returned value. Raises UsageError."""
        description = self.extra.get("description") or self.parameters.description
        described = {"description": description} if description else {}
        return results.complete(call.server_info, **described, messages=prompt_messages(self.name, value))

    def error_body(self, call: FeatureCall, error: ToolError) -> ProtocolError:
        """Build the JSON-RPC error: a GetPromptResult cannot report one."""
        if isinstance(error, ArgumentsError):
            return ProtocolError(INVALID_PARAMS, str(error))
        return feature_error(error)


class PromptMethods(Struct, frozen=True, dict=True):  # dict: the list is created once
    """Lists a set of prompts, and finds the call that a request asks for."""

    prompts: Mapping[str, Prompt]

    @cached_property
    def list_prompts(self) -> FeatureList:
        """The handler of `prompts/list`."""
        return FeatureList("prompts", self.prompts)

    def find_call(self, context: RequestContext) -> FeatureCall:
        """Return the call that a request asks for. Raises ProtocolError or InsufficientScope."""
        params = CallParams.read(context.params)
        prompt = find_by_name(self.prompts, context, "prompt")
        return FeatureCall(prompt, prompt.name, params, context, not context.request.is_legacy)
