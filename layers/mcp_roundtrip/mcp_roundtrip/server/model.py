"""The types that the modules of the server share: a request, the feature that it calls, and the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field

from mcp_roundtrip.errors import INVALID_PARAMS, ProtocolError, ToolError
from mcp_roundtrip.http import HttpResponse
from mcp_roundtrip.ports import Ports
from mcp_roundtrip.principal import Principal, caller_binding
from mcp_roundtrip.protocol.capabilities import TASKS, CapabilityPath, missing_capabilities
from mcp_roundtrip.protocol.jsonrpc import INTERNAL_ERROR
from mcp_roundtrip.protocol.request_validation import ValidRequest
from mcp_roundtrip.server.invocation import Invocation, internal_error
from mcp_roundtrip.server.options import ServerOptions

if TYPE_CHECKING:
    from mcp_roundtrip.state.claims import Binding

TaskSupport = Literal["optional", "required"]
"""Whether a call may become a task, or the client has to support tasks."""


class RequestContext(Struct, frozen=True):
    """One admitted request and everything that its handler may use.

    `headers`: the HTTP headers by lower-case name; None for a direct invocation, which has none.
    `scopes`: the scopes that the caller was granted.
    """

    request: ValidRequest
    principal: Principal | None
    ports: Ports
    invocation: Invocation
    headers: Mapping[str, str] | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def is_identified(self) -> bool:
        """Whether the caller has an identity: a principal, or a session id."""
        return self.principal is not None or self.session_nonce is not None

    @property
    def can_store_calls(self) -> bool:
        """Whether a call of this caller can wait for answers on the question page."""
        return self.serves_pages and self.is_identified

    @property
    def serves_pages(self) -> bool:
        """Whether the deployment has a task table, and links to its question page work."""
        config = self.ports.config
        return config.has_task_table and config.audience().startswith(("https://", "http://"))

    @property
    def params(self) -> Mapping[str, Any]:
        """The params of the request."""
        return self.request.params

    @property
    def session_nonce(self) -> str | None:
        """The nonce of the client's session, which distinguishes anonymous callers and authenticates none.

        None for clients of 2026-07-28, which have no sessions, and for a missing or foreign session id.
        """
        return self.request.meta.session_nonce

    @property
    def internal_error(self) -> ProtocolError:
        """The -32603 error that quotes the correlation id of this invocation."""
        return internal_error(self.invocation.correlation_id)


class Reply(Struct, frozen=True):
    """The end of a request: a result or an error, the notifications before it, and fields for the log.

    `headers`: further HTTP headers of a result.
    """

    body: Mapping[str, Any] | ProtocolError
    notifications: tuple[Mapping[str, Any], ...] = ()
    log_fields: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[RequestContext], Reply | HttpResponse]
"""Handles one method. It returns an HttpResponse if another function has already answered.

Raises ProtocolError or InsufficientScope.
"""


class CallParams(Struct, frozen=True):
    """The params of `tools/call`, `prompts/get` and `resources/read`.

    `model_responses` are the answers that a model passed on among the arguments. `is_in_app`: the question
    app makes the call, to continue one that asked a question.
    """

    arguments: Mapping[str, Any]
    input_responses: Mapping[str, Any]
    request_state: str | None
    is_retry: bool = False
    model_responses: Mapping[str, Any] = field(default_factory=dict)
    is_in_app: bool = False

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> CallParams:
        """Check the types of the members. Raises ProtocolError -32602."""
        responses = params.get("inputResponses", {})
        state = params.get("requestState")
        arguments = params.get("arguments")
        if not isinstance(responses, dict):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: inputResponses must be an object")
        if "requestState" in params and not isinstance(state, str):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: requestState must be a string")
        if arguments is not None and not isinstance(arguments, dict):
            raise ProtocolError(INVALID_PARAMS, "Invalid params: arguments must be an object")
        is_retry = "inputResponses" in params or "requestState" in params
        return cls(arguments or {}, responses, state, is_retry)

    def declined(self) -> int:
        """Return how many of the responses decline or cancel."""
        if not self.input_responses and not self.model_responses:
            return 0
        received = [*self.input_responses.values(), *self.model_responses.values()]
        responses = [each for each in received if isinstance(each, dict)]
        return sum(each.get("action") in ("decline", "cancel") for each in responses)


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
    def type_text(self) -> str | None:
        """Return a text that is equal only for equal schemas, if there is one. Raises DefinitionError."""

    def check(self) -> None:
        """Build what calls and lists need. Raises DefinitionError."""

    def known(self, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments without those that clients add, or that a lenient tool does not know."""

    def validate(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """Return the typed arguments. Raises ArgumentsError."""


class Feature(Protocol):
    """A tool, a prompt or a resource.

    `kind`: "tool", "prompt" or "resource".
    `requires`: the client capabilities without which a call is refused.
    `scopes`: the scopes that a caller must have been granted.
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
        """Build the object that lists contain."""

    @property
    def definition_digest(self) -> str:
        """The digest of the definition, computed once."""

    @property
    def signature_digest(self) -> str | None:
        """A digest that is equal only for equal definitions, if there is one; cheaper than the definition."""

    def result(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """Build the result for a returned value. Raises UsageError for a value that is none."""

    def error_body(self, server_info: Mapping[str, Any], error: ToolError) -> dict[str, Any] | ProtocolError:
        """Build the result that reports an error, or the JSON-RPC error where no result can."""


class FeatureCall(Struct, frozen=True, dict=True):  # dict: the binding is computed at most once
    """A request for one feature. `name` is what the request calls it: a resource by its URI.

    `follows_state`: whether the client continues a call with the `requestState` of its result.
    """

    feature: Feature
    name: str
    params: CallParams
    context: RequestContext
    options: ServerOptions
    follows_state: bool = True

    @property
    def server_info(self) -> Mapping[str, Any]:
        """The Implementation object of the results."""
        return self.options.server_info_for(self.context.invocation)

    @property
    def log_identity(self) -> dict[str, str]:
        """The log field that names the feature: not by the URI of a request, which may hold secrets."""
        return {self.feature.kind: self.feature.name}

    @property
    def may_start_task(self) -> bool:
        """Whether the tool supports tasks and the client declared them."""
        if self.feature.task is None:
            return False
        return not missing_capabilities(self.context.request.meta.capabilities, [TASKS])

    @cached_property
    def binding(self) -> Binding:
        """The caller, the feature and the arguments to which a state of this call is bound."""
        from mcp_roundtrip.state.claims import Binding  # a call without a state needs none

        config = self.context.ports.config
        return Binding(
            issuer=config.issuer(),
            audience=config.audience(),
            principal=caller_binding(self.context.principal),
            method=self.context.request.method,
            name=self.name,
            arguments=self.params.arguments,
        )


def feature_error(error: ToolError, data: Mapping[str, Any] | None = None) -> ProtocolError:
    """Return the JSON-RPC error of a feature that ran and whose results cannot report an error.

    Its HTTP status is 200, as a tool's is, because notifications precede it.
    """
    code = INTERNAL_ERROR if error.is_internal else INVALID_PARAMS
    return ProtocolError(code, str(error), None if error.is_internal else data, http_status=200)


RunFeature = Callable[[FeatureCall], Reply]
"""Runs a feature and returns its reply. Raises ProtocolError for a request that is refused before it runs."""
