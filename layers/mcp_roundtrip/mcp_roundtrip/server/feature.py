"""What tools, prompts and resources have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError, ToolError
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR

if TYPE_CHECKING:
    from mcp_roundtrip.engine.channels import Channel


class Parameters(Protocol):
    """The parameters of a feature's function: `arguments.typed_arguments.Arguments` and its siblings."""

    @property
    def context_parameter(self) -> str | None: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def is_lenient(self) -> bool: ...
    @property
    def description(self) -> str: ...
    @property
    def names(self) -> Sequence[str]:
        """The names of the arguments on the wire."""

    @property
    def parameter_headers(self) -> Mapping[tuple[str, ...], str]:
        """The arguments that clients also send as `Mcp-Param-*` headers (SEP-2243)."""

    def json_schema(self) -> Mapping[str, Any]: ...

    def check(self) -> None:
        """Build what calls and lists need. Raises DefinitionError."""

    def known(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments without those that clients add, or that a lenient tool does not know."""

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return the typed arguments. Raises ArgumentsError."""


class Feature(Protocol):
    """A tool, a prompt or a resource: `tools.Tool`, `prompts.Prompt`, `resources.Resource`.

    `kind`: "tool", "prompt" or "resource".
    `requires`: the client capabilities without which a call is refused.
    `scopes`: the scopes that a caller must have been granted.
    `channels`: the fallbacks for questions that the client cannot show, in the author's order.
    `form_view_uri`: the URI of the view that shows its questions.
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
    def task(self) -> Literal["optional", "required"] | None: ...
    @property
    def scopes(self) -> tuple[str, ...]: ...
    @property
    def channels(self) -> tuple[Channel, ...]: ...
    @property
    def form_view_uri(self) -> str | None: ...

    def definition(self) -> dict[str, Any]:
        """Build the object that lists contain."""

    def result(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """Build the result for a returned value. Raises UsageError for a value that is none."""

    def error_body(self, server_info: Mapping[str, Any], error: ToolError) -> dict[str, Any] | ProtocolError:
        """Build the result that reports an error, or the JSON-RPC error where no result can."""


def feature_error(error: ToolError, data: Mapping[str, Any] | None = None) -> ProtocolError:
    """Return the JSON-RPC error of a feature that ran and whose results cannot report an error.

    Its HTTP status is 200, as a tool's is, because notifications precede it.
    """
    code = INTERNAL_ERROR if error.is_internal else INVALID_PARAMS
    return ProtocolError(code, str(error), None if error.is_internal else data, http_status=200)
