"""Resources: contents that a URI or a URI template names (server/resources)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Final, Literal

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_roundtrip.arguments.string_arguments import StringArguments
from mcp_roundtrip.content.resource_contents import resource_contents
from mcp_roundtrip.errors import DefinitionError, ProtocolError, ResourceNotFound, ToolError
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.capabilities import CapabilityPath
from mcp_roundtrip.protocol.resource_uris import UriIndex, UriTemplate, spelling_key
from mcp_roundtrip.server.admission import UnknownResource, find_by_uri, read_uri
from mcp_roundtrip.server.errors import feature_error
from mcp_roundtrip.server.lists import FeatureList
from mcp_roundtrip.server.model import CallParams, FeatureCall, RequestContext
from mcp_roundtrip.server.options import Fallback

CacheScope = Literal["public", "private"]

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:.")


class Resource(Struct, frozen=True, dict=True):  # dict: the template is parsed once
    """A registered resource: a `Feature`.

    `name`: its URI or URI template. `label`: the member `name` of its definition.

    Raises DefinitionError for options that contradict each other.
    """

    name: str
    label: str
    function: Callable[..., Any]
    parameters: StringArguments
    requires: tuple[CapabilityPath, ...] = ()
    mime_type: str | None = None
    ttl_ms: int = 0
    cache_scope: CacheScope = "private"
    extra: Mapping[str, Any] = field(default_factory=dict)
    scopes: tuple[str, ...] = ()
    channels: tuple[Fallback, ...] = ()

    kind: ClassVar[str] = "resource"
    task: ClassVar[None] = None
    form_view_uri: ClassVar[None] = None

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

    @cached_property
    def template(self) -> UriTemplate:
        """The parsed URI template. Raises DefinitionError."""
        return UriTemplate.parse(self.name)

    @property
    def spelling(self) -> str:
        """A text that is equal for equivalent URIs."""
        return spelling_key(self.name)

    def definition(self) -> dict[str, Any]:
        """Build the Resource or ResourceTemplate object of the lists."""
        at = "uri" if self.template.is_static else "uriTemplate"
        members: dict[str, Any] = {at: self.name, "name": self.label}
        if self.parameters.description:
            members["description"] = self.parameters.description
        if self.mime_type is not None:
            members["mimeType"] = self.mime_type
        return {**members, **self.extra}

    def result(self, call: FeatureCall, value: Any) -> dict[str, Any]:
        """Build the ReadResourceResult. A result that depends on the client's answers must not be cached."""
        contents = resource_contents(self.name, value, call.name, self.mime_type)
        ttl_ms, scope = (0, "private") if call.params.is_retry else (self.ttl_ms, self.cache_scope)
        return results.complete(call.server_info, contents=contents) | {"ttlMs": ttl_ms, "cacheScope": scope}

    def error_body(self, call: FeatureCall, error: ToolError) -> ProtocolError:
        """Build the JSON-RPC error: a ReadResourceResult cannot report one."""
        if isinstance(error, (ArgumentsError, ResourceNotFound)):
            return UnknownResource(call.name)
        return feature_error(error, {"uri": call.name})


class ResourceMethods(Struct, frozen=True, dict=True):  # dict: the index is built at the first read
    """Lists a set of resources and templates, and finds the call that a request asks for."""

    resources: Mapping[str, Resource]

    @cached_property
    def list_resources(self) -> FeatureList:
        """The handler of `resources/list`."""
        return FeatureList("resources", self.static)

    @cached_property
    def list_templates(self) -> FeatureList:
        """The handler of `resources/templates/list`."""
        templates = {uri: each for uri, each in self.resources.items() if not each.template.is_static}
        return FeatureList("resourceTemplates", templates)

    @property
    def static(self) -> dict[str, Resource]:
        """The resources with a fixed URI. Those with a URI template have a list of their own."""
        return {uri: each for uri, each in self.resources.items() if each.template.is_static}

    @cached_property
    def _index(self) -> UriIndex[Resource]:
        return UriIndex((each.template, each) for each in self.resources.values())

    def find_call(self, context: RequestContext) -> FeatureCall:
        """Return the call that a request asks for. Raises ProtocolError or InsufficientScope."""
        params = CallParams.read({**context.params, "arguments": None})
        uri = read_uri(context.params)
        resource, variables = find_by_uri(self._index, uri, context)
        context.ports.observer.redact(variables.values)  # decoded parts of the URI
        params = replace(params, arguments=variables)
        return FeatureCall(resource, uri, params, context, not context.request.is_legacy)
