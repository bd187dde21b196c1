"""Prompts: messages that a user can ask for by name (server/prompts)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError, ToolError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.protocol.methods import PROMPTS_GET, PROMPTS_LIST
from mcp_roundtrip.schema.prompt_messages import messages
from mcp_roundtrip.schema.string_arguments import StringArguments
from mcp_roundtrip.server.inputs import CallParams
from mcp_roundtrip.server.model import (
    Handler,
    RequestContext,
    ServerOptions,
    call_of,
    carried_out,
    listed,
    named,
)
from mcp_roundtrip.server.round import Reply


@dataclass(frozen=True, slots=True)
class Prompt:
    """A registered prompt: a `Feature`."""

    name: str
    function: Callable[..., Any]
    parameters: StringArguments
    requires: tuple[CapabilityPath, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()

    kind: ClassVar[str] = "prompt"
    task: ClassVar[None] = None

    def definition(self) -> dict[str, Any]:
        """The Prompt object of `prompts/list`."""
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

    def completed(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """GetPromptResult."""
        description = self.extra.get("description") or self.parameters.description
        described = {"description": description} if description else {}
        return results.complete(server_info, **described, messages=messages(self.name, value))

    def refused(self, server_info: Mapping[str, Any], error: ToolError) -> NoReturn:
        """Raises ProtocolError: a prompt has no other way to say that it failed."""
        if isinstance(error, ArgumentsError):
            raise ProtocolError(INVALID_PARAMS, str(error))
        raise carried_out(error)


@dataclass(frozen=True, slots=True)
class PromptServer:
    """`prompts/list` and `prompts/get` over a set of prompts."""

    options: ServerOptions
    prompts: Mapping[str, Prompt]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {PROMPTS_LIST: self._list, PROMPTS_GET: self._get}

    def _list(self, context: RequestContext) -> Reply:
        return listed(self.options, "prompts", self.prompts, context)

    def _get(self, context: RequestContext) -> Reply:
        call_params = CallParams.read(context.route.params)
        prompt = named(self.options, self.prompts, context, "prompt")
        return call_of(self.options, context, prompt, prompt.name, call_params).answer()
