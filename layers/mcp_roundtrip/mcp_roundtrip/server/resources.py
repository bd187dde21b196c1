"""Resources: contents by URI, one or a template's worth of them (server/resources)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, NoReturn

from mcp_roundtrip.errors import INVALID_PARAMS, DefinitionError, ProtocolError, ResourceNotFound, ToolError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.protocol.methods import RESOURCES_LIST, RESOURCES_READ, RESOURCES_TEMPLATES_LIST
from mcp_roundtrip.protocol.uri_template import UriIndex, UriTemplate
from mcp_roundtrip.schema.resource_contents import contents
from mcp_roundtrip.schema.string_arguments import StringArguments
from mcp_roundtrip.server.inputs import CallParams
from mcp_roundtrip.server.model import (
    AnyGuarded,
    Handler,
    RequestContext,
    ServerOptions,
    authorize,
    call_of,
    carried_out,
    listed,
)
from mcp_roundtrip.server.round import Reply

CacheScope = Literal["public", "private"]

NOT_FOUND: Final = "Resource not found"

MAX_URI: Final = 8_192
"""Characters of a URI: matching takes time in proportion to it."""

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")


@dataclass(frozen=True, slots=True)
class Resource:
    """A registered resource: a `Feature`. `name` is its URI or template, `label` what lists call it.

    `uri` is the URI that is being read.
    """

    template: UriTemplate
    label: str
    function: Callable[..., Any]
    parameters: StringArguments
    requires: tuple[CapabilityPath, ...] = ()
    mime_type: str | None = None
    ttl_ms: int = 0
    cache_scope: CacheScope = "private"
    extra: Mapping[str, Any] = field(default_factory=dict)
    uri: str = ""
    scopes: tuple[str, ...] = ()

    kind: ClassVar[str] = "resource"
    task: ClassVar[None] = None

    def __post_init__(self) -> None:
        variables, names = set(self.template.variables), set(self.parameters.names)
        if variables != names:
            differing = ", ".join(sorted(variables ^ names))
            raise DefinitionError(
                f"resource {self.name!r}: its variables and the function's parameters differ by {differing}; "
                "write a parameter of the same name for each variable"
            )
        if not _SCHEME.match(self.name):
            raise DefinitionError(f"resource {self.name!r} has no scheme; write one such as 'docs://guide'")
        if type(self.ttl_ms) is not int or self.ttl_ms < 0 or self.cache_scope not in ("public", "private"):
            raise DefinitionError(
                f"resource {self.name!r}: ttl_ms={self.ttl_ms!r:.100}, cache_scope={self.cache_scope!r:.100} "
                'is not possible; use whole milliseconds of at least 0, and "public" or "private"'
            )
        if self.scopes and self.cache_scope == "public":
            raise DefinitionError(
                f'resource {self.name!r} needs scopes and would be cached for all; use cache_scope="private"'
            )

    @property
    def name(self) -> str:
        """The URI or the template."""
        return self.template.text

    def definition(self) -> dict[str, Any]:
        """The Resource or ResourceTemplate object of the lists."""
        at = "uri" if self.template.is_static else "uriTemplate"
        members: dict[str, Any] = {at: self.name, "name": self.label}
        if self.parameters.description:
            members["description"] = self.parameters.description
        if self.mime_type is not None:
            members["mimeType"] = self.mime_type
        return {**members, **self.extra}

    def completed(self, server_info: Mapping[str, Any], value: Any, *, is_retry: bool) -> dict[str, Any]:
        """ReadResourceResult. What rests on a client's answers is its alone, and stale at once."""
        read = results.complete(server_info, contents=contents(self.name, value, self.uri, self.mime_type))
        ttl_ms, scope = (0, "private") if is_retry else (self.ttl_ms, self.cache_scope)
        return {**read, "ttlMs": ttl_ms, "cacheScope": scope}

    def refused(self, server_info: Mapping[str, Any], error: ToolError) -> NoReturn:
        """Raises ProtocolError: the contents of a resource cannot say that it failed."""
        if isinstance(error, (ArgumentsError, ResourceNotFound)):
            raise not_found(self.uri)
        raise carried_out(error, {"uri": self.uri})


def not_found(uri: str) -> ProtocolError:
    """-32602 with the URI."""
    return ProtocolError(INVALID_PARAMS, NOT_FOUND, {"uri": uri})


@dataclass(frozen=True)  # no slots: the index is made at the first read
class ResourceServer:
    """The lists of resources and templates, and `resources/read`, over resources by URI or template."""

    options: ServerOptions
    resources: Mapping[str, Resource]

    def handlers(self) -> dict[str, Handler]:
        """The handler of each method."""
        return {
            RESOURCES_LIST: self._list,
            RESOURCES_TEMPLATES_LIST: self._list_templates,
            RESOURCES_READ: self._read,
        }

    @cached_property
    def _index(self) -> UriIndex[Resource]:
        return UriIndex((each.template, each) for each in self.resources.values())

    def _list(self, context: RequestContext) -> Reply:
        return listed(self.options, "resources", of_kind(self.resources, is_static=True), context)

    def _list_templates(self, context: RequestContext) -> Reply:
        return listed(self.options, "resourceTemplates", of_kind(self.resources, is_static=False), context)

    def _read(self, context: RequestContext) -> Reply:
        params = context.route.params
        call_params = CallParams.read({name: value for name, value in params.items() if name != "arguments"})
        uri = uri_of(params)
        resource, variables = find_authorized(self.options, self._index, uri, context)
        call_params = replace(call_params, arguments=variables)
        context.ports.observer.redact(variables.values)  # parts of the URI, decoded
        return call_of(self.options, context, replace(resource, uri=uri), uri, call_params).answer()


def of_kind(resources: Mapping[str, Resource], *, is_static: bool) -> dict[str, Resource]:
    """Those with a URI of their own, or those of URI templates: they have lists of their own."""
    return {name: each for name, each in resources.items() if each.template.is_static is is_static}


def uri_of(params: Mapping[str, Any]) -> str:
    """`params.uri`. Raises -32602."""
    uri = params.get("uri")
    if not isinstance(uri, str) or len(uri) > MAX_URI:
        text = f"Invalid params: uri must be a string of at most {MAX_URI} characters"
        raise ProtocolError(INVALID_PARAMS, text)
    return uri


def find_authorized(
    options: ServerOptions, index: UriIndex[AnyGuarded], uri: str, context: RequestContext
) -> tuple[AnyGuarded, dict[str, str]]:
    """What this URI means in any of its spellings, and the values of its variables.

    Where several templates fit equally well the first one counts, and the caller needs the scopes of all of
    them: an open one yields nothing that another one protects. Raises -32602 and InsufficientScope.
    """
    fitting = index.find(uri)
    item, variables = fitting[0] if fitting else (None, {})
    scopes = tuple(dict.fromkeys(scope for each, _ in fitting for scope in each.scopes))
    return authorize(options, item, context, not_found(uri), scopes), variables
