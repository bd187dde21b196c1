"""Read the routes of a template's HTTP APIs, as a deployment has them.

Sources: CloudFormation's AWS::ApiGatewayV2::Route, Integration and Api; API Gateway's OpenAPI extension
x-amazon-apigateway-integration; SAM's event HttpApi. SAM writes an event into the definition of an
AWS::Serverless::HttpApi. For another API, or one with DefinitionUri, an event is a permission and no route.

Routes of REST APIs are read so that requests for them get the reason why they are not served.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from mcp_roundtrip_tools.template.intrinsics import is_intrinsic
from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.local_names import IMPLICIT_REST_API
from mcp_roundtrip_tools.template.model import Route, TemplateError
from mcp_roundtrip_tools.template.queues import events_of
from mcp_roundtrip_tools.template.resources import (
    HTTP_API,
    INTEGRATION,
    RAW_HTTP_API,
    ROUTE,
    TemplateResource,
)
from mcp_roundtrip_tools.template.stacks import Stacks
from mcp_roundtrip_tools.template.yaml_reader import parse

DEFAULT: Final = "$default"

_ANY: Final = "x-amazon-apigateway-any-method"
_INTEGRATION: Final = "x-amazon-apigateway-integration"
_METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace", _ANY})
_FUNCTION: Final = re.compile(r"function:([^:/]+)")
"""The name of a function in its ARN, also within the ARN of API Gateway that invokes it."""


class RouteReader:
    """Reads the routes of an application. `functions` has the names of its functions by those of resources.

    A route that leads to no function of the application leads to a name of `left_out.targets`.
    """

    def __init__(self, stacks: Stacks, functions: Mapping[str, str], left_out: LeftOut) -> None:
        self._stacks = stacks
        self._functions = functions
        self._left_out = left_out

    def read(self, functions: Collection[TemplateResource]) -> tuple[Route, ...]:
        """Return the routes; those to functions come first."""
        found: list[Route] = []
        for function in functions:  # an event replaces the operation of a definition, so it comes first
            with self._left_out.noting():
                found += [*self._of_events(function), *self._of_rest_api(function)]
        found += self._of_resources()
        for api in self._stacks.of_type(HTTP_API):
            found += self._of_definition(api, "DefinitionBody", "DefinitionUri")
        for api in self._stacks.of_type(RAW_HTTP_API):
            found += self._of_definition(api, "Body")
            found += self._of_quick_create(api)
        found += self._of_function_urls(functions, is_only=not found)
        found.sort(key=lambda route: route.function in self._left_out.targets)
        self._note_shared_keys(found)
        return tuple(found)

    def _note_shared_keys(self, routes: Iterable[Route]) -> None:
        """Note the routes that the first one with their key hides: all HTTP APIs have one address here."""
        first: dict[str, str] = {}
        for route in routes:
            served = first.setdefault(route.key, route.function)
            if route.function not in (served, *self._left_out.targets):
                self._left_out.notes.append(
                    f"{route.key} leads to {served} and not to {route.function}: the HTTP APIs of a template "
                    "have one address here"
                )

    def _of_resources(self) -> Iterator[Route]:
        integrations = {each.physical_name: each for each in self._stacks.of_type(INTEGRATION)}
        web_sockets = self._web_sockets()
        for route in self._stacks.of_type(ROUTE):
            with self._left_out.noting():
                if route.text("ApiId", "") in web_sockets:
                    continue
                name = route.text("Target", "").removeprefix("integrations/")
                if name not in integrations:
                    raise TemplateError(f"{route.name}.Target: must be an integration of this template")
                members = integrations[name]
                to = self._target(
                    members, "IntegrationType", "IntegrationUri", "PayloadFormatVersion", "IntegrationSubtype"
                )
                yield _route(route.text("RouteKey"), to)

    def _web_sockets(self) -> set[str]:
        """Return the names of the WebSocket APIs, which are left out."""
        found = set()
        for api in self._stacks.of_type(RAW_HTTP_API):
            if api.properties.get("ProtocolType") == "WEBSOCKET":
                found.add(api.physical_name)
                self._left_out.notes.append(f"{api.name}: WebSocket APIs are not served, HTTP APIs are")
        return found

    def _of_quick_create(self, api: TemplateResource) -> Iterator[Route]:
        if "Target" in api.properties:
            with self._left_out.noting():
                yield _route(api.text("RouteKey", DEFAULT), self._function(api, "Target"))

    def _of_definition(self, api: TemplateResource, *members: str) -> Iterator[Route]:
        for member in members:
            with self._left_out.noting():
                for path, operations in _members(self._definition(api, member), "paths"):
                    yield from self._of_path(api.part(member, {}), path, operations)

    def _of_path(self, source: TemplateResource, path: str, operations: Any) -> Iterator[Route]:
        for method, operation in operations.items() if isinstance(operations, dict) else ():
            if method.lower() in _METHODS:
                with self._left_out.noting():
                    integration = dict(_members(operation, _INTEGRATION))
                    where = source.part(f"{path}.{method}", integration)
                    to = self._target(where, "type", "uri", "payloadFormatVersion", "integrationSubtype")
                    verb = "ANY" if method == _ANY else method.upper()
                    yield Route(verb, DEFAULT if path.strip("/") == DEFAULT else path, to)

    def _definition(self, api: TemplateResource, member: str) -> Any:
        """Return an API's OpenAPI document, unresolved."""
        written = api.properties.get(member)
        match written:
            case {"Fn::Transform": {"Name": "AWS::Include", "Parameters": {"Location": str(location)}}}:
                return self._read(api, member, location)
            case str(location):
                return self._read(api, member, location)
        return api.get(member) if is_intrinsic(written) else written

    def _read(self, api: TemplateResource, member: str, location: str) -> Any:
        try:
            return parse((api.folder / location).read_text(encoding="utf-8"))
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise TemplateError(f"{api.name}.{member}: {location} cannot be read: {error}") from None

    def _of_events(self, function: TemplateResource) -> Iterator[Route]:
        to = self._functions[function.name]
        for event in events_of(function, "HttpApi"):
            with self._left_out.noting():
                if self._is_route(event):
                    yield Route(event.text("Method", "ANY").upper(), event.text("Path", DEFAULT), to)

    def _of_rest_api(self, function: TemplateResource) -> Iterator[Route]:
        for event in events_of(function, "Api"):
            match event.properties.get("RestApiId"):
                case {"Ref": str(api)}:
                    name = api
                case _:
                    name = IMPLICIT_REST_API
            self._left_out.targets[name] = f"{name}: REST APIs are not served, HTTP APIs are"
            with self._left_out.noting():
                yield Route(event.text("Method").upper(), event.text("Path"), name)

    def _of_function_urls(self, functions: Collection[TemplateResource], *, is_only: bool) -> Iterator[Route]:
        """Yield the route of the first function URL, if the template has no other routes: it has no path."""
        for function in functions:
            if "FunctionUrlConfig" not in function.properties:
                continue
            if is_only:
                yield Route("ANY", DEFAULT, self._functions[function.name])
                is_only = False
            else:
                problem = "a function URL is served only if it is the template's only address"
                self._left_out.notes.append(f"{function.name}.FunctionUrlConfig: {problem}")

    def _is_route(self, event: TemplateResource) -> bool:
        """Return whether SAM writes the event into the definition of an API."""
        match event.properties.get("ApiId"):
            case None:
                return True
            case {"Ref": name} | str(name):
                apis = self._stacks.of_type(HTTP_API)
                own = (api for api in apis if (api.stack, api.logical_id) == (event.stack, name))
                return any("DefinitionUri" not in api.properties for api in own)
        return False

    def _target(self, integration: TemplateResource, kind: str, uri: str, version: str, subtype: str) -> str:
        """Return the function of an integration, or a name that is left out."""
        try:
            if integration.text(kind).upper() != "AWS_PROXY" or subtype in integration.properties:
                raise TemplateError(f"{integration.name}.{kind}: only Lambda functions are run")
            if integration.text(version, "1.0") != "2.0":
                raise TemplateError(f"{integration.name}.{version}: only payload format 2.0 is supported")
            return self._function(integration, uri)
        except TemplateError as error:
            self._left_out.targets[integration.name] = str(error)
            return integration.name

    def _function(self, source: TemplateResource, member: str) -> str:
        found = _FUNCTION.search(source.text(member))
        if found is None or found[1] not in self._functions.values():
            raise TemplateError(f"{source.name}.{member}: must be a function of this template")
        return found[1]


def _route(key: str, to: str) -> Route:
    """Return the route of a route key such as `POST /mcp` or `$default`."""
    method, _, path = key.rpartition(" ")
    return Route(method.strip().upper() or "ANY", path, to)


def _members(document: Any, name: str) -> Iterator[tuple[str, Any]]:
    found = document.get(name) if isinstance(document, dict) else None
    yield from found.items() if isinstance(found, dict) else ()
