"""What all features have in common: types alone, so nothing imports it at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mcp_roundtrip.errors import ToolError
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.server.tools import TaskSupport


class Parameters(Protocol):
    """How a tool takes its arguments: `schema.arguments.Arguments` or `schema.raw_arguments.RawArguments`."""

    @property
    def context_parameter(self) -> str | None: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def description(self) -> str: ...
    @property
    def names(self) -> Sequence[str]:
        """The arguments' names on the wire."""

    @property
    def parameter_headers(self) -> Mapping[tuple[str, ...], str]:
        """Arguments that are sent as `Mcp-Param-*` headers, too (SEP-2243)."""

    def json_schema(self) -> Mapping[str, Any]: ...
    def check(self) -> None:
        """Build what calls and lists need. Raises DefinitionError."""

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]: ...


class Feature(Protocol):
    """What a client can call: a tool, a prompt or a resource.

    `kind` says which, `requires` are the client capabilities without which a call is refused at once,
    `scopes` what its caller has to have been granted.
    """

    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def function(self) -> Callable[..., Any]: ...
    @property
    def parameters(self) -> Parameters: ...
    @property
    def requires(self) -> tuple[CapabilityPath, ...]: ...
    @property
    def task(self) -> TaskSupport | None: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...

    def definition(self) -> dict[str, Any]:
        """What stands in the list."""

    def completed(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """The result that a returned value is. Raises UsageError for a value that is none."""

    def refused(self, server_info: Mapping[str, Any], error: ToolError) -> dict[str, Any]:
        """The result that says what went wrong. Raises ProtocolError where there is no such result."""
