"""The types that the modules of the server share: a request, the feature that it calls, and the reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_roundtrip.arguments.docstring import with_descriptions
from mcp_roundtrip.auth.callers import Principal, caller_binding
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.errors import ProtocolError, ToolError
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.protocol.capabilities import (
    ELICITATION_FORM,
    ELICITATION_URL,
    INPUT_CAPABILITIES,
    TASKS,
    CapabilityPath,
    declares,
    missing_capabilities,
    shows_apps,
)
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION
from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.protocol.jsonrpc import invalid_params
from mcp_roundtrip.protocol.request_validation import ValidRequest
from mcp_roundtrip.server.call_plan import (
    Carrier,
    ClientAbilities,
    Plan,
    carrier_of_unfinished,
    plan_call,
    state_support,
)
from mcp_roundtrip.server.lambda_invocation import Invocation, internal_error
from mcp_roundtrip.server.options import Fallback, ServerOptions, TaskSupport
from mcp_roundtrip.state.claims import Binding

if TYPE_CHECKING:
    from mcp_roundtrip.arguments.typed_arguments import Arguments


class Feature(Struct, frozen=True):
    """The base class of tools, prompts and resources: `tools.Tool`, and those of `prompts_and_resources`.

    `name`: of a resource, its URI or URI template.
    `requires`: the client capabilities without which a call is refused.
    `scopes`: the scopes that a caller must have been granted.
    `channels`: the fallbacks for questions that the client cannot show, in the author's order.
    `extra`: further members of its definition.
    `task`: whether a call may become a task; None if not.
    """

    kind: ClassVar[Literal["tool", "prompt", "resource"]]

    name: str
    function: Callable[..., Any]
    parameters: Arguments
    requires: tuple[CapabilityPath, ...] = ()
    scopes: tuple[str, ...] = ()
    channels: tuple[Fallback, ...] = ()
    extra: Mapping[str, Any] = {}
    task: TaskSupport | None = None

    @property
    def asks(self) -> bool:
        """Whether it may ask: it takes a context."""
        return self.parameters.signature.context_parameter is not None

    @property
    def form_view_uri(self) -> str | None:
        """The view that shows its questions."""
        return None

    @property
    def described(self) -> Mapping[str, str]:
        """The member `description` of its definition, unless `extra` has one."""
        signature = self.parameters.signature
        prose = with_descriptions(signature.prose, signature.replaced_texts)
        return {"description": prose} if prose else {}

    def definition(self) -> dict[str, Any]:
        """Build the object that lists contain."""
        raise NotImplementedError

    def result(self, call: FeatureCall, value: Any) -> dict[str, Any]:
        """Build the result for a returned value. Raises UsageError for a value that is none."""
        raise NotImplementedError

    def error_body(self, call: FeatureCall, error: ToolError) -> dict[str, Any] | ProtocolError:
        """Build the result that reports an error, or the JSON-RPC error where no result can."""
        raise NotImplementedError


WireInputRequests = Mapping[str, Mapping[str, Any]]
"""The `inputRequests` of a result: InputRequest objects by key."""


class RequestContext(Struct, frozen=True):
    """One admitted request and everything that its handler may use.

    `headers`: the HTTP headers by lower-case name; None for a direct invocation, which has none.
    `scopes`: what the caller was granted.
    `uses_dialect`: whether the client uses the dialect of tasks (`legacy_tasks`), whose results may ask.
    """

    request: ValidRequest
    principal: Principal | None
    ports: Ports
    invocation: Invocation
    options: ServerOptions
    headers: Mapping[str, str] | None = None
    scopes: frozenset[str] = frozenset()
    uses_dialect: bool = False

    @property
    def takes_rounds(self) -> bool:
        """Whether the client knows results that ask (SEP-2322)."""
        return self.uses_dialect or not self.request.is_legacy

    @property
    def serves_pages(self) -> bool:
        """Whether the deployment has a task table, and links to its question page work."""
        settings = self.ports.settings
        has_table = settings.task_table is not None
        return has_table and settings.required("audience").startswith(("https://", "http://"))

    def question_page_url(self, link: str | None) -> str:
        return f"{self.ports.settings.required('audience').rstrip('/')}/questions?token={link or ''}"

    def table_unavailable(self, error: StoreError, **fields: Any) -> ProtocolError:
        """Log a failure of the task table with these fields, and return the error for the client."""
        self.ports.observer.record_failure("task_table_unavailable", error, **fields)
        return self.internal_error

    @property
    def server_info(self) -> Mapping[str, Any]:
        """The Implementation object for results: the front door's if it forwarded the call."""
        return self.invocation.forwarded.server_info or self.options.server_info

    @property
    def hides_unauthorized(self) -> bool:
        """Whether this server, or the front door that forwarded the call, hides features."""
        return self.options.hide_unauthorized or self.invocation.forwarded.hide_unauthorized

    @property
    def params(self) -> Mapping[str, Any]:
        return self.request.params

    def client_abilities(self) -> ClientAbilities:
        meta = self.request.meta
        return ClientAbilities(
            forms=declares(meta.capabilities, ELICITATION_FORM),
            urls=declares(meta.capabilities, ELICITATION_URL),
            apps=shows_apps(meta.capabilities),
            state_support=state_support(meta) if self.takes_rounds else "fails",
            stores_calls=self.serves_pages,
            signed_in=self.principal is not None,
        )

    def without_input_capabilities(self) -> RequestContext:
        """Return the context of a call during which the client answers no requests, and follows no task."""
        capabilities = self.request.meta.capabilities
        declared = {name: each for name, each in capabilities.items() if name not in INPUT_CAPABILITIES}
        extensions = declared.get("extensions")
        if isinstance(extensions, dict):
            declared["extensions"] = {key: each for key, each in extensions.items() if key != TASKS_EXTENSION}
        return self.with_capabilities(declared)

    def with_capabilities(self, capabilities: Mapping[str, Any]) -> RequestContext:
        meta = replace(self.request.meta, capabilities=capabilities)
        return replace(self, request=replace(self.request, meta=meta))

    def tag(self, **fields: Any) -> None:
        """Add fields to the following log lines of this request, and to its audit record."""
        self.ports.observer.tag(**fields)
        self.invocation.operation.tag(**fields)

    @property
    def internal_error(self) -> ProtocolError:
        return internal_error(self.invocation.correlation_id)


class Reply(Struct, frozen=True):
    """The end of a request: a result or an error, the notifications before it, and fields for the log.

    `headers`: further HTTP headers of a result. `reason`: of a refusal, for the audit record. `asked`: the
    method and the channel of each question that the response asks, by key. `repeated`: a sentence about the
    steps that a repeated call runs again, for an error in place of the result.
    """

    body: Mapping[str, Any] | ProtocolError
    notifications: tuple[Mapping[str, Any], ...] = ()
    log_fields: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    reason: str | None = None
    asked: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    repeated: str = ""


class CallParams(Struct, frozen=True):
    """The params of `tools/call`, `prompts/get` and `resources/read`.

    `model_responses` are the answers that a model passed on among the arguments, and `continuation_code` is
    the code of the call that it continues. `is_in_app`: a view continues the call that asked.
    """

    arguments: Mapping[str, Any]
    input_responses: Mapping[str, Any]
    request_state: str | None
    model_responses: Mapping[str, Any] = field(default_factory=dict)
    is_in_app: bool = False
    continuation_code: str | None = None

    @classmethod
    def read(cls, params: Mapping[str, Any]) -> CallParams:
        """Check the types of the members. Raises ProtocolError -32602."""
        responses = params.get("inputResponses", {})
        state = params.get("requestState")
        arguments = params.get("arguments")
        if not isinstance(responses, dict):
            raise invalid_params("inputResponses must be an object")
        if "requestState" in params and not isinstance(state, str):
            raise invalid_params("requestState must be a string")
        if arguments is not None and not isinstance(arguments, dict):
            raise invalid_params("arguments must be an object")
        return cls(arguments or {}, responses, state)

    def declined(self) -> int:
        received = (*self.input_responses.values(), *self.model_responses.values())
        return sum(each.get("action") in ("decline", "cancel") for each in received if isinstance(each, dict))


class FeatureCall(Struct, frozen=True, dict=True):  # dict: plan and binding are computed at most once
    """A request for one feature. `name` is what the request calls it: a resource by its URI."""

    feature: Feature
    name: str
    params: CallParams
    context: RequestContext

    @property
    def server_info(self) -> Mapping[str, Any]:
        return self.context.server_info

    @property
    def log_identity(self) -> dict[str, str]:
        """The log field that names the feature: not by the URI of a request, which may hold secrets."""
        return {self.feature.kind: self.feature.name}

    def record(self, event: str, **fields: Any) -> None:
        self.context.ports.observer.record(event, **self.log_identity, **fields)

    def record_failure(self, event: str, error: BaseException, **fields: Any) -> None:
        self.context.ports.observer.record_failure(event, error, **self.log_identity, **fields)

    @property
    def may_start_task(self) -> bool:
        """Whether the tool supports tasks and the client declared them."""
        if self.feature.task is None:
            return False
        return not missing_capabilities(self.context.request.meta.capabilities, [TASKS])

    @cached_property
    def plan(self) -> Plan:
        feature = self.feature
        client = self.context.client_abilities()
        if feature.kind != "tool":  # only the call of a tool can be made again by a model
            client = replace(client, stores_calls=False)
        return plan_call(client, feature.channels, asks=feature.asks)

    @property
    def carrier_if_unfinished(self) -> Carrier | None:
        """Where the call waits if it is out of time; None if it cannot continue."""
        return carrier_of_unfinished(
            self.plan, is_in_app=self.params.is_in_app, may_start_task=self.may_start_task
        )

    @cached_property
    def binding(self) -> Binding:
        """The caller, the feature and the arguments to which a state of this call is bound."""
        settings = self.context.ports.settings
        return Binding(
            issuer=settings.state_issuer,
            audience=settings.required("audience"),
            principal=caller_binding(self.context.principal),
            method=self.context.request.method,
            name=self.name,
            arguments=self.params.arguments,
        )


Handler = Callable[[RequestContext], Reply | HttpResponse]
"""Handles one method. An HttpResponse is another function's. Raises ProtocolError or InsufficientScope."""
