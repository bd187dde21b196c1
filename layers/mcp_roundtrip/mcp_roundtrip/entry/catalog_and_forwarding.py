"""The owners of a front door: the catalog of their features, and how requests are forwarded to them.

A request for `/tools/<owner>` is forwarded unread: the function of the owner does all checks itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final

from msgspec import MsgspecError, Raw, Struct, ValidationError
from msgspec.json import Decoder

from mcp_roundtrip.auth.callers import ANONYMOUS, Caller, EventAuthenticator, IssuerUnavailable, Unauthorized
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.errors import ProtocolError
from mcp_roundtrip.internal_errors import ForwardingFailed, Refusal
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse, body_within_limit
from mcp_roundtrip.protocol.jsonrpc import RETRY_AFTER_S, TOO_MANY_REQUESTS, Notification
from mcp_roundtrip.protocol.request_validation import InvalidRequest, ValidRequest, validate_request
from mcp_roundtrip.protocol.strict_json import parse_json
from mcp_roundtrip.server.admission import identify
from mcp_roundtrip.server.lambda_invocation import Forwarded, Invocation, internal_error, owner_timeout_s
from mcp_roundtrip.server.options import Fallback, TaskSupport

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


def forward(
    owner: str,
    ports: Ports,
    invocation: Invocation,
    log_fields: Mapping[str, Any] = MappingProxyType({}),
    **feature: Any,
) -> HttpResponse:
    """Return the response of an owner. `feature`: what `Forwarded` has about a feature of the catalog.

    Raises SettingsError, or ForwardingFailed, and logs the latter: an owner that crashed has logged nothing.
    """
    timeout_s = owner_timeout_s(invocation.deadline_ms - ports.clock_ms())
    deadline_ms = int((ports.clock() + timeout_s) * 1_000)
    trace = None if ports.tracer is None else ports.tracer.current()
    forwarded = Forwarded(deadline_ms, correlation_id=invocation.correlation_id, trace=trace, **feature)
    try:
        raw = ports.forward(owner, invocation.event, forwarded.custom(), timeout_s)
    except ForwardingFailed as error:
        ports.observer.record_failure("forwarding_failed", error, owner=owner, **log_fields)
        raise
    ports.observer.record("request_forwarded", **log_fields, owner=owner)
    return HttpResponse(200, raw=raw)


def forwarding_failed(failure: ForwardingFailed, invocation: Invocation) -> ProtocolError:
    """Return the error for a request that could not be forwarded, or whose response was lost."""
    if failure.is_throttled:
        text = "The server is busy, and this request did not run: send it again later."
        data = {"retryAfterMs": 1_000 * RETRY_AFTER_S}
        return Refusal("forwarding_failed", TOO_MANY_REQUESTS, text, data, http_status=429)
    error = internal_error(invocation.correlation_id)
    return Refusal("forwarding_failed", error.code, error.message)


TIME_TO_AUTHENTICATE_MS: Final = 10_000
"""The time that has to be left to authenticate the caller of a request that could not be forwarded."""


def read_unread(request: HttpRequest, ports: Ports) -> ValidRequest | Notification | InvalidRequest | None:
    """Read a request that was forwarded unread and had no response; return None if its body is too large."""
    body, settings = request.body or b"", ports.settings
    if not body_within_limit(body, settings.max_body_bytes):
        return None
    return validate_request(request.headers, body, serves_legacy=True, max_values=settings.max_json_values)


def identify_caller(request: HttpRequest, ports: Ports, invocation: Invocation) -> Caller:
    """Return the caller; an anonymous one if the token is invalid, or cannot be verified in time."""
    has_time = invocation.deadline_ms - ports.clock_ms() > TIME_TO_AUTHENTICATE_MS
    if has_time or isinstance(ports.authenticator, EventAuthenticator):  # which fetches no keys
        with suppress(Unauthorized, IssuerUnavailable):
            return identify(request, ports)
    return ANONYMOUS
