"""The owners of a front door: the catalog of their features, and how requests are forwarded to them.

A build step writes the features of all owners to a file. A call of the endpoint is forwarded to the owner of
its feature. A request for `/tools/<owner>` is forwarded unread: this is the address of one owner, whose
function does all checks itself. The event is forwarded unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from typing import Any, Final

from msgspec import MsgspecError, Raw, Struct, ValidationError
from msgspec.json import Decoder

from mcp_roundtrip.auth.callers import (
    ANONYMOUS,
    EventAuthenticator,
    InsufficientScope,
    IssuerUnavailable,
    Unauthorized,
)
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import ForwardingFailed, Refusal, SettingsError
from mcp_roundtrip.protocol import jsonrpc
from mcp_roundtrip.protocol.canonical import parse_json
from mcp_roundtrip.protocol.constants import FEATURE_KINDS
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse, body_within_limit
from mcp_roundtrip.protocol.request_validation import ValidRequest, validate_request
from mcp_roundtrip.server.invocation import Forwarded, Invocation, internal_error, owner_timeout_s
from mcp_roundtrip.server.options import Fallback, ServerOptions, TaskSupport
from mcp_roundtrip.server.request_types import Reply, RequestContext
from mcp_roundtrip.server.responses import error_response, log_fault

_NAMES: Final = {"json": "definition", "view_uri": "view"}


class CatalogEntry(Struct, frozen=True, dict=True, rename=_NAMES):  # dict: each property is computed once
    """A feature in the catalog: its owner, its definition, and the options that lists depend on.

    `json`: the definition, which is parsed when it is needed: a call needs that of one feature.
    `asks`: whether it is a tool that may ask. `channels`: the fallbacks of its questions.
    `view_uri`: the URI of the author's own view of a tool's results.
    """

    owner: str
    json: Raw
    task: TaskSupport | None = None
    channels: tuple[Fallback, ...] = ()
    asks: bool = False
    scopes: tuple[str, ...] = ()
    view_uri: str | None = None

    @cached_property
    def name(self) -> str:
        """The name, URI or URI template that identifies the feature. Raises MsgspecError."""
        identity = _IDENTITY.decode(self.json)
        name = identity.uri_template or identity.uri or identity.name
        if not name:
            raise ValidationError("the definition has no name")
        return name

    @cached_property
    def members(self) -> Mapping[str, Any]:
        members: Mapping[str, Any] = parse_json(bytes(self.json))
        return members

    def definition(self) -> Mapping[str, Any]:
        return self.members


class _Identity(Struct, rename="camel"):
    """The members of a definition that identify it. All but skills have a name."""

    name: str = ""
    uri: str | None = None
    uri_template: str | None = None


class _File(Struct, rename="camel"):
    tools: tuple[CatalogEntry, ...] = ()
    prompts: tuple[CatalogEntry, ...] = ()
    resources: tuple[CatalogEntry, ...] = ()
    templates: tuple[CatalogEntry, ...] = ()
    skills: tuple[CatalogEntry, ...] = ()
    scopes: dict[str, tuple[str, ...]] = {}
    digests: dict[str, str] = {}
    hide_unauthorized: bool = False


_FILE: Final = Decoder(_File)
_IDENTITY: Final = Decoder(_Identity)


class Catalog(Struct, frozen=True):
    """The features of all owners, by name, URI or template; skills by the URI of their SKILL.md.

    `scopes`: which narrower scopes a scope implies.
    `digests`: the digest of each owner's features, which the owner has, too.
    `hides_unauthorized`: whether owners hide features that the caller may not use.
    """

    tools: Mapping[str, CatalogEntry]
    prompts: Mapping[str, CatalogEntry]
    resources: Mapping[str, CatalogEntry]
    templates: Mapping[str, CatalogEntry]
    scopes: Mapping[str, tuple[str, ...]]
    digests: Mapping[str, str] = {}
    hides_unauthorized: bool = False
    skills: Mapping[str, CatalogEntry] = {}

    @classmethod
    def read(cls, text: str) -> Catalog:
        """Read a catalog file; the lists keep their order. Raises ValueError for any other text."""
        try:
            file = _FILE.decode(text)
            kinds = (file.tools, file.prompts, file.resources, file.templates, file.skills)
            tools, prompts, resources, templates, skills = (
                {each.name: each for each in kind} for kind in kinds
            )
        except (MsgspecError, UnicodeError):
            raise ValueError("this is no catalog; write one with `make catalog`") from None
        return cls(
            tools, prompts, resources, templates, file.scopes, file.digests, file.hide_unauthorized, skills
        )

    @property
    def required_scopes(self) -> set[str]:
        return {scope for each in self._entries() for scope in each.scopes}

    @property
    def owners(self) -> set[str]:
        return {each.owner for each in self._entries()}

    def _entries(self) -> Iterator[CatalogEntry]:
        for kind in (self.tools, self.prompts, self.resources, self.templates, self.skills):
            yield from kind.values()


TIME_TO_AUTHENTICATE_MS: Final = 10_000
"""The time that has to be left to authenticate the caller of a request that could not be forwarded."""

OWNER_PATHS: Final = "/tools/"
"""The path of an owner is this and its name, behind the base path of the API."""

_WELL_KNOWN: Final = "/.well-known/"


def forward(owner: str, ports: Ports, invocation: Invocation, **feature: Any) -> HttpResponse:
    """Return the response of an owner. `feature` is what `Forwarded` has about a feature of the catalog.

    Raises ForwardingFailed, which is logged (see `forwarding_failed`).
    """
    timeout_s = owner_timeout_s(invocation.deadline_ms - ports.clock_ms())
    deadline_ms = int((ports.clock() + timeout_s) * 1_000)
    trace = None if ports.tracer is None else ports.tracer.current()
    forwarded = Forwarded(deadline_ms, correlation_id=invocation.correlation_id, trace=trace, **feature)
    try:
        raw = ports.forward(owner, invocation.event or {}, forwarded.custom(), timeout_s)
    except SettingsError:  # nothing was sent
        raise
    except Exception as error:
        ports.observer.record_failure("forwarding_failed", error, owner=owner)
        if isinstance(error, ForwardingFailed):
            raise
        raise ForwardingFailed("unexpected") from error
    return HttpResponse(200, raw=raw)


def forwarding_failed(invocation: Invocation) -> ProtocolError:
    """Return the error for a request that could not be forwarded, or whose response was lost."""
    error = internal_error(invocation.correlation_id)
    return Refusal("forwarding_failed", error.code, error.message)


def owner_response(
    catalog: Catalog,
    options: ServerOptions,
    find_feature: Callable[[RequestContext], object],
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
) -> HttpResponse | None:
    """Return the response to a request for the path of an owner; None for the front door's own paths.

    `find_feature` finds the feature of a call in the catalog. Raises ProtocolError with status 404 for a name
    that no owner has.
    """
    before, found, name = request.path.rpartition(OWNER_PATHS)
    if not found or _WELL_KNOWN in f"{before}/":
        return None
    # Behind a rule for the paths of one owner, `/tools/<owner>/tools/<another>` must not be the other's.
    is_nested = OWNER_PATHS in before and not _own_path(ports).startswith(f"{before}/")
    if name not in catalog.owners or is_nested:
        if _is_own_path(request.path, ports):
            return None
        raise ProtocolError(jsonrpc.INVALID_REQUEST, "There is no such tool", http_status=404)
    try:
        response = forward(name, ports, invocation)
    except (ForwardingFailed, SettingsError) as error:
        if invocation.operation is not None:
            _note_unread_request(request, ports, invocation, options, find_feature)
        if isinstance(error, SettingsError):
            raise
        reply = Reply(forwarding_failed(invocation))
        # A client that looks for metadata evaluates the status.
        status = None if request.method == "POST" else 500
        return error_response(_request_id(request, ports), reply, request, ports.observer, status)
    ports.observer.record("request_forwarded", owner=name)
    return response


def _note_unread_request(
    request: HttpRequest,
    ports: Ports,
    invocation: Invocation,
    options: ServerOptions,
    find_feature: Callable[[RequestContext], object],
) -> None:
    """Note for the audit who calls what with a valid request that was forwarded unread, and had no response.

    The record has no principal if the token is invalid, or if too little time is left to fetch the keys of
    its issuer.
    """
    config, operation, body = ports.config, invocation.operation, request.body or b""
    assert operation is not None
    try:
        if not body_within_limit(body, config.max_body_bytes):
            return
        checked = validate_request(
            request.headers, body, serves_legacy=True, max_values=config.max_json_values
        )
        if not isinstance(checked, ValidRequest):
            return
        caller = ANONYMOUS
        has_time = invocation.deadline_ms - ports.clock_ms() > TIME_TO_AUTHENTICATE_MS
        if has_time or isinstance(config.authenticator, EventAuthenticator):  # which fetches no keys
            with suppress(Unauthorized, IssuerUnavailable):
                caller = config.authenticator.authenticate(request.headers, request.authorizer)
        context = RequestContext(checked, caller.principal, ports, invocation, options, None, caller.scopes)
        operation.note_request(context, is_admitted=False)
        if checked.method in FEATURE_KINDS:
            with suppress(ProtocolError, InsufficientScope):
                find_feature(context)
    except Exception as error:  # the response does not depend on the record
        log_fault(ports.observer, error)


def _is_own_path(path: str, ports: Ports) -> bool:
    """Return whether a path is the front door's own, behind a base path such as `/tools`."""
    own = _own_path(ports)
    return own != "/" and f"{path}/".startswith(f"{own}/")


def _own_path(ports: Ports) -> str:
    """Return the path of the front door's URI; `/` if it has none."""
    try:
        audience = ports.config.audience()
    except SettingsError:
        return "/"
    return "/" + audience.partition("://")[2].partition("/")[2].rstrip("/")


def _request_id(request: HttpRequest, ports: Ports) -> jsonrpc.RequestId | None:
    """Return the id of a request that was not read; None if it has none."""
    body, config = request.body or b"", ports.config
    if not body_within_limit(body, config.max_body_bytes):
        return None
    try:
        message = jsonrpc.parse_message(body, config.max_json_values)
    except jsonrpc.InvalidEnvelope as failure:
        return failure.id
    return None if isinstance(message, jsonrpc.Notification) else message.id
