"""Prompts (server/prompts) and resources (server/resources): the features of a server besides its tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.structs import force_setattr, replace

from mcp_roundtrip.arguments.docstring import with_descriptions
from mcp_roundtrip.arguments.signature import call_parameters
from mcp_roundtrip.arguments.typed_arguments import StringArguments
from mcp_roundtrip.content.blocks import prompt_messages, resource_contents
from mcp_roundtrip.content.tool_results import return_type
from mcp_roundtrip.errors import (
    INVALID_PARAMS,
    DefinitionError,
    ProtocolError,
    ResourceNotFound,
    ToolError,
    UsageError,
)
from mcp_roundtrip.internal_errors import ArgumentsError
from mcp_roundtrip.protocol import results
from mcp_roundtrip.protocol.constants import URI_SCHEME
from mcp_roundtrip.protocol.jsonrpc import invalid_params
from mcp_roundtrip.protocol.resource_uris import UriIndex, UriTemplate, percent_encode
from mcp_roundtrip.server import admission
from mcp_roundtrip.server.call_errors import feature_error
from mcp_roundtrip.server.decorator_options import check_context
from mcp_roundtrip.server.request_types import CallParams, Feature, FeatureCall, Reply, RequestContext


class Prompt(Feature, frozen=True):
    kind = "prompt"

    parameters: StringArguments

    def definition(self) -> dict[str, Any]:
        arguments = [self._argument(name) for name in self.parameters.names]
        taken = {"arguments": arguments} if arguments else {}
        return {"name": self.name, **self.described, **taken, **self.extra}

    def _argument(self, name: str) -> dict[str, Any]:
        whole = self.parameters.json_schema()
        schema = whole["properties"][name]
        described = {key: schema[key] for key in ("title", "description") if key in schema}
        return {"name": name, **described, "required": name in whole.get("required", ())}

    def result(self, call: FeatureCall, value: Any) -> dict[str, Any]:
        given = self.extra.get("description")
        described = {"description": given} if given else self.described
        return results.complete(call.server_info, **described, messages=prompt_messages(self.name, value))

    def error_body(self, call: FeatureCall, error: ToolError) -> ProtocolError:
        if isinstance(error, ArgumentsError):
            return ProtocolError(INVALID_PARAMS, str(error))
        return feature_error(error)


class Resource(Feature, frozen=True, kw_only=True, dict=True):  # dict: the template is parsed once
    """A registered resource. `label`: the member `name` of its definition. Raises DefinitionError."""

    kind = "resource"

    parameters: StringArguments
    label: str
    mime_type: str | None = None
    ttl_ms: int = 0
    cache_scope: Literal["public", "private"] = "private"

    def __post_init__(self) -> None:
        variables, names = set(self.template.variables), set(self.parameters.names)
        if variables != names:
            differing = ", ".join(sorted(variables ^ names))
            raise DefinitionError(
                f"resource {self.name!r}: its variables and the function's parameters differ by {differing}; "
                "write a parameter of the same name for each variable"
            )
        if not re.match(f"{URI_SCHEME}.", self.name):
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
    def described(self) -> Mapping[str, str]:
        """The docstring; a ResourceTemplate has no other member for the texts on its variables."""
        signature = self.parameters.signature
        prose = with_descriptions(signature.prose, signature.descriptions)
        return {"description": prose} if prose else {}

    def definition(self) -> dict[str, Any]:
        """Build the Resource or ResourceTemplate object of the lists."""
        named = {"uri": percent_encode(self.name)} if self.template.is_static else {"uriTemplate": self.name}
        return {**named, "name": self.label, **self.described, **self.extra}

    def result(self, call: FeatureCall, value: Any) -> dict[str, Any]:
        contents = resource_contents(self.name, value, call.name, self.mime_type)
        # A result that depends on the client's answers must not be cached.
        is_retry = not call.context.params.keys().isdisjoint({"inputResponses", "requestState"})
        ttl_ms, scope = (0, "private") if is_retry else (self.ttl_ms, self.cache_scope)
        return results.complete(call.server_info, contents=contents) | {"ttlMs": ttl_ms, "cacheScope": scope}

    def error_body(self, call: FeatureCall, error: ToolError) -> ProtocolError:
        if isinstance(error, (ArgumentsError, ResourceNotFound)):
            return admission.unknown_resource(call.name, call.context)
        return feature_error(error)


def _arguments_of(function: Callable[..., Any], content: str) -> StringArguments:
    """Return the parameters of a function that may return the types `content`. Raises DefinitionError."""
    return_type(function, content)  # refuses content of other packages
    parameters = StringArguments.from_function(function)
    check_context(parameters.signature)
    return parameters


MAX_VALUES: Final = 100
"""Values in one response (schema, CompleteResult)."""


class Completion(Struct, frozen=True):
    """Suggested values, best first: at most 100 are sent. `total` is the number of all matches, if known.

    Raises UsageError for values that are not text.
    """

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None

    def __post_init__(self) -> None:
        is_sequence = isinstance(self.values, Iterable) and not isinstance(self.values, str)
        values = tuple(self.values) if is_sequence else ()
        if not is_sequence or not all(isinstance(value, str) for value in values):
            kind = type(self.values).__name__
            raise UsageError(f"a completion returned {kind}; return a list of str, or a Completion")
        if self.total is not None and (type(self.total) is not int or self.total < len(values)):
            raise UsageError(
                f"Completion.total is {self.total!r:.100}, with {len(values)} values; pass how many there "
                "are in all, or None"
            )
        force_setattr(self, "values", values)


class PromptsAndResources(Struct, frozen=True, dict=True):  # dict: the index is built at the first read
    """The prompts, resources and completions of a registry: adds them, and serves them."""

    prompts: dict[str, Prompt]
    resources: dict[str, Resource]
    completers: Mapping[tuple[admission.Reference, str], Callable[..., Any]]
    _uris: dict[str, str] = field(default_factory=dict)  # by the key of their templates

    def add_prompt(self, name: str, function: Callable[..., Any], **options: Any) -> None:
        """Add a prompt with these `options` of a Prompt. Raises DefinitionError."""
        self.prompts[name] = Prompt(
            name, function, _arguments_of(function, "PromptMessage, Text or Image"), **options
        )

    def add_resource(self, uri: str, function: Callable[..., Any], **options: Any) -> None:
        """Add a resource with these `options` of a Resource. Raises DefinitionError."""
        parameters = _arguments_of(function, "ResourceContents")
        resource = Resource(name=uri, function=function, parameters=parameters, **options)
        first = self._uris.setdefault(resource.template.key, uri)
        if first in self.resources:
            raise DefinitionError(
                f"resource {uri!r} is registered twice, first as {first!r}; give one of them another URI"
            )
        self.resources[uri] = resource

    @property
    def static(self) -> dict[str, Resource]:
        return {uri: each for uri, each in self.resources.items() if each.template.is_static}

    @property
    def templates(self) -> dict[str, Resource]:
        return {uri: each for uri, each in self.resources.items() if not each.template.is_static}

    def find_prompt(self, context: RequestContext) -> FeatureCall:
        """Return the call that a `prompts/get` asks for. Raises ProtocolError or InsufficientScope."""
        params = CallParams.read(context.params)
        prompt = admission.find_by_name(self.prompts, context, "prompt")
        return FeatureCall(prompt, prompt.name, params, context)

    @cached_property
    def _index(self) -> UriIndex[Resource]:
        return UriIndex((each.template, each) for each in self.resources.values())

    def find_resource(self, context: RequestContext) -> FeatureCall:
        """Return the call that a `resources/read` asks for. Raises ProtocolError or InsufficientScope."""
        params = CallParams.read({**context.params, "arguments": None})  # which are in the URI
        uri = admission.read_uri(context.params)
        resource, variables = admission.find_by_uri(self._index, uri, context)
        context.ports.observer.redact(variables.values)  # decoded parts of the URI
        params = replace(params, arguments=variables)
        return FeatureCall(resource, uri, params, context)

    def complete(self, context: RequestContext) -> Reply:
        """Return suggestions. A completion requires the scopes of its prompt or resource."""
        kind, name = admission.read_reference(context.params)
        own = name if kind == "prompt" else self._index.find_equivalent(name)
        argument, value = _read_argument(context.params)
        feature = self.prompts.get(own) if kind == "prompt" else self.resources.get(own)
        admission.authorize(feature, context, lambda: admission.unknown_item(kind, name))
        assert feature is not None
        if argument not in feature.parameters.names:
            raise ProtocolError(INVALID_PARAMS, f"Unknown argument: {argument[:128]}")
        completer = self.completers.get(((kind, own), argument))
        others = _read_other_arguments(context.params)
        try:
            if completer is None:
                choices = feature.parameters.choices(argument)
                suggested = Completion([choice for choice in choices if choice.startswith(value)])
            else:
                suggested = _suggest(completer, value, others)
        except Exception as error:
            context.ports.observer.record_failure("completion_raised", error, **{kind: own})
            raise context.internal_error from error
        return Reply(results.complete(context.server_info, completion=_completion_members(suggested)))


def _suggest(completer: Callable[..., Any], value: str, others: Mapping[str, str]) -> Completion:
    takes_others = len(call_parameters(completer)) == 2
    found = completer(value, others) if takes_others else completer(value)
    return found if isinstance(found, Completion) else Completion(found)


def _completion_members(found: Completion) -> dict[str, Any]:
    values = list(found.values[:MAX_VALUES])
    total, has_more = found.total, found.has_more
    if len(found.values) > MAX_VALUES:
        has_more = True
    elif total is None and not has_more:
        total = len(values)
    if has_more is None:
        has_more = total is not None and total > len(values)
    counted = {} if total is None else {"total": total}
    return {"values": values, **counted, "hasMore": bool(has_more)}


def _read_argument(params: Mapping[str, Any]) -> tuple[str, str]:
    match params.get("argument"):
        case {"name": str(name), "value": str(value)}:
            return name, value
    raise invalid_params("argument must have a name and a value, both strings")


def _read_other_arguments(params: Mapping[str, Any]) -> dict[str, str]:
    match params.get("context", {}):
        case {"arguments": dict(arguments)} if all(isinstance(v, str) for v in arguments.values()):
            return arguments
        case dict(context) if context.get("arguments") is None:
            return {}
    raise invalid_params("context.arguments must be an object of strings")
