"""Read what invokes the functions of a template: routes of HTTP APIs, and queues.

Sources: CloudFormation's AWS::ApiGatewayV2::Route, Integration and Api, AWS::SQS::Queue and
AWS::Lambda::EventSourceMapping; SAM's events HttpApi and SQS. SAM writes an event HttpApi into the definition
of an AWS::Serverless::HttpApi. For another API, or one with DefinitionUri, an event is a permission and no
route. OpenAPI documents and REST APIs are not read.
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from mcp_roundtrip_tools.template.local_names import IMPLICIT_HTTP_API, name_of, name_of_function
from mcp_roundtrip_tools.template.model import LeftOut, Queue, Route, TemplateError, function_name, queue_arn
from mcp_roundtrip_tools.template.resources import HTTP_APIS, REST_APIS, TemplateResource
from mcp_roundtrip_tools.template.stacks import Stack


def events_of(function: TemplateResource, kind: str) -> Iterator[TemplateResource]:
    """Yield the properties of a function's events of this type. Raises TemplateError."""
    for name, event in function.members("Events"):
        if isinstance(event, dict) and event.get("Type") == kind:
            properties = event.get("Properties") or {}
            if not isinstance(properties, dict):
                raise TemplateError(f"{function.name}.Events.{name}.Properties: must be an object")
            yield function.part(f"Events.{name}", properties)


def note_other_events(functions: Iterable[TemplateResource], left_out: LeftOut) -> None:
    """Note the events that are never sent, of functions that run here."""
    for function in functions:
        if name_of_function(function) in left_out.targets:
            continue
        with left_out.noting():
            kinds = {name: _kind_of(event) for name, event in function.members("Events")}
            if others := [f"{name} ({kind})" for name, kind in kinds.items() if kind not in _EVENTS]:
                left_out.notes.append(
                    f"{function.name}.Events: only HttpApi and SQS events are sent, not {', '.join(others)}"
                )


def _kind_of(event: object) -> str:
    return str(event.get("Type", "no Type")) if isinstance(event, dict) else "no Type"


def read_queues(
    queues: Iterable[TemplateResource],
    mappings: Iterable[TemplateResource],
    functions: Iterable[TemplateResource],
    left_out: LeftOut,
) -> dict[str, Queue]:
    """Return the queues by name. Mappings whose queue is not in the template are left out."""
    by_arn: dict[str, TemplateResource] = {}
    for queue in queues:
        with left_out.noting():
            by_arn[queue_arn(name_of(queue))] = queue
    readers: dict[str, str] = {}
    for source, member, function in _readers(mappings, functions):
        with left_out.noting():
            arn = source.text(member)
            if arn not in by_arn:
                raise TemplateError(f"{source.name}.{member}: must be a queue of this template")
            readers[arn] = function_name(function or source.text("FunctionName"))
    found = {}
    for arn, queue in by_arn.items():
        with left_out.noting():
            found[name_of(queue)] = _queue(queue, readers.get(arn), by_arn)
    return found


def _queue(queue: TemplateResource, reader: str | None, by_arn: Mapping[str, TemplateResource]) -> Queue:
    redrive = queue.get_known("RedrivePolicy")
    target = by_arn.get(redrive.get("deadLetterTargetArn", ""))
    return Queue(
        name_of(queue),
        reader,
        queue.number("VisibilityTimeout", 30),
        float(redrive.get("maxReceiveCount", math.inf)),
        None if target is None else name_of(target),
    )


def _readers(
    mappings: Iterable[TemplateResource], functions: Iterable[TemplateResource]
) -> Iterator[tuple[TemplateResource, str, str | None]]:
    """Yield what maps a queue to a function, the property with the queue, and the function of an event."""
    for mapping in mappings:
        yield mapping, "EventSourceArn", None
    for function in functions:
        for event in events_of(function, "SQS"):
            yield event, "Queue", name_of_function(function)


DEFAULT: Final = "$default"

_EVENTS: Final = frozenset({"HttpApi", "SQS"})
"""The types of events that are read, from AWS::Serverless::Function."""

_DEFINITIONS: Final = frozenset({"DefinitionBody", "DefinitionUri", "Body", "Target"})
"""Members of APIs that define routes, and are not read."""
_OTHER_FORMAT: Final = "PayloadFormatVersion: only payload format 2.0 is supported"
_FUNCTION: Final = re.compile(r"function:([^:/]+)")
"""The name of a function in its ARN, also within the ARN of API Gateway that invokes it."""


@dataclass(frozen=True, slots=True)
class RouteReader:
    """Reads the routes of an application. `functions` has the names of its functions by those of resources.

    A route that leads to no function of the application leads to a name of `left_out.targets`.
    """

    stacks: Stack
    functions: Mapping[str, str]
    left_out: LeftOut

    def read(self, functions: Collection[TemplateResource]) -> tuple[Route, ...]:
        """Return the routes; those to functions come first."""
        found: list[Route] = []
        for function in functions:  # an event replaces the operation of a definition, so it comes first
            with self.left_out.noting():
                found += self._of_events(function)
        found += self._of_resources()
        for api in self.stacks.of_type(*HTTP_APIS):
            for member in _DEFINITIONS & api.properties.keys():
                self.left_out.notes.append(f"{api.name}.{member}: its routes are not read")
        for api in self.stacks.of_type(*REST_APIS):
            self.left_out.notes.append(f"{api.name}: REST APIs are not served, HTTP APIs are")
        found += self._of_function_urls(functions, is_only=not found)
        found.sort(key=lambda route: route.function in self.left_out.targets)
        return tuple(found)

    def _of_resources(self) -> Iterator[Route]:
        found = self.stacks.of_type("AWS::ApiGatewayV2::Integration")
        integrations = {each.physical_name: each for each in found}
        web_sockets = self._web_sockets()
        for route in self.stacks.of_type("AWS::ApiGatewayV2::Route"):
            with self.left_out.noting():
                if route.text("ApiId", "") in web_sockets:
                    continue
                name = route.text("Target", "").removeprefix("integrations/")
                if name not in integrations:
                    raise TemplateError(f"{route.name}.Target: must be an integration of this template")
                yield _route(route.text("RouteKey"), self._target(integrations[name]))

    def _web_sockets(self) -> set[str]:
        """Return the names of the WebSocket APIs, which are left out."""
        found = set()
        for api in self.stacks.of_type("AWS::ApiGatewayV2::Api"):
            if api.properties.get("ProtocolType") == "WEBSOCKET":
                found.add(api.physical_name)
                self.left_out.notes.append(f"{api.name}: WebSocket APIs are not served, HTTP APIs are")
        return found

    def _of_events(self, function: TemplateResource) -> Iterator[Route]:
        for event in events_of(function, "HttpApi"):
            with self.left_out.noting():
                if not self._is_route(event):
                    continue
                to = self.functions[function.name]
                if event.text("PayloadFormatVersion", "2.0") != "2.0":
                    to = event.name
                    self.left_out.targets[to] = f"{to}.{_OTHER_FORMAT}"
                yield Route(event.text("Method", "ANY").upper(), event.text("Path", DEFAULT), to)

    def _of_function_urls(self, functions: Collection[TemplateResource], *, is_only: bool) -> Iterator[Route]:
        """Yield the route of the first function URL, if the template has no other routes: it has no path."""
        for function in functions:
            if "FunctionUrlConfig" not in function.properties:
                continue
            if is_only:
                yield Route("ANY", DEFAULT, self.functions[function.name])
                is_only = False
            else:
                problem = "a function URL is served only if it is the template's only address"
                self.left_out.notes.append(f"{function.name}.FunctionUrlConfig: {problem}")

    def _is_route(self, event: TemplateResource) -> bool:
        """Return whether SAM writes the event into the definition of an API. Raises TemplateError."""
        match event.properties.get("ApiId"):
            case None:
                return True
            case {"Ref": name} | str(name):
                if name == IMPLICIT_HTTP_API:
                    return True
                for api in self.stacks.of_type(*HTTP_APIS):
                    if (api.stack, api.logical_id) == (event.stack, name):
                        is_of_sam = api.kind == "AWS::Serverless::HttpApi"
                        return is_of_sam and "DefinitionUri" not in api.properties
        raise TemplateError(f"{event.name}.ApiId: must be an HTTP API of this template")

    def _target(self, integration: TemplateResource) -> str:
        """Return the function of an integration, or a name that is left out."""
        name = integration.name
        try:
            is_proxy = integration.text("IntegrationType").upper() == "AWS_PROXY"
            if not is_proxy or "IntegrationSubtype" in integration.properties:
                raise TemplateError(f"{name}.IntegrationType: only Lambda functions are run")
            if integration.text("PayloadFormatVersion", "1.0") != "2.0":
                raise TemplateError(f"{name}.{_OTHER_FORMAT}")
            return self._function(integration, "IntegrationUri")
        except TemplateError as error:
            self.left_out.targets[name] = str(error)
            return name

    def _function(self, source: TemplateResource, member: str) -> str:
        found = _FUNCTION.search(source.text(member))
        if found is None or found[1] not in self.functions.values():
            raise TemplateError(f"{source.name}.{member}: must be a function of this template")
        return found[1]


def _route(key: str, to: str) -> Route:
    """Return the route of a route key such as `POST /mcp` or `$default`."""
    method, _, path = key.rpartition(" ")
    return Route(method.strip().upper() or "ANY", path, to)
