"""The names and ARNs that a template's resources have on this computer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from mcp_roundtrip_tools.template import resources as types
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable
from mcp_roundtrip_tools.template.model import (
    ACCOUNT,
    LATEST,
    REGION,
    STACK_NAME,
    TemplateError,
    function_arn,
    key_arn,
    queue_arn,
)
from mcp_roundtrip_tools.template.parameters import stack_id
from mcp_roundtrip_tools.template.resources import TemplateResource, TemplateResources

IMPLICIT_HTTP_API: Final = "ServerlessHttpApi"
IMPLICIT_REST_API: Final = "ServerlessRestApi"
"""The APIs that SAM creates for events without an ApiId or a RestApiId."""

NAMED: Final = (
    types.ALIAS,
    types.LAYER,
    types.FUNCTION,
    types.QUEUE,
    types.TABLE,
    types.BUCKET,
    types.KEY,
    types.STACK,
    types.APPLICATION,
    types.SETTINGS_VERSION,
    types.SSM_PARAMETER,  # last: its value may refer to any other resource
)
"""The types of resources whose names and ARNs an emulated service, or this runner, has."""

KeyArns = Mapping[str, "str | Unresolvable"]
"""The ARN of each key by its name, such as `Platform.StateKey`, or why it has none here."""


@dataclass(frozen=True, slots=True)
class LocalServices:
    """What a template has on this computer: its keys, and the URLs of its API and of SQS."""

    key_arns: KeyArns = field(default_factory=dict)
    api_url: str = "http://127.0.0.1"
    sqs_url: str = "http://127.0.0.1"


def local_names(
    parameters: TemplateNames, resources: TemplateResources, services: LocalServices
) -> TemplateNames:
    """Return the template's names with those of its resources.

    A resource whose name cannot be resolved is Unresolvable.
    """
    return _LocalNames(parameters, resources).read(services)


def layer_arn(layer: TemplateResource) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:{layer.physical_name}:1"


def bucket_name(bucket: TemplateResource) -> str:
    # CloudFormation derives a name from the stack's and the logical id; bucket names are lower-case.
    return bucket.text("BucketName", f"{STACK_NAME}-{bucket.physical_name.lower()}")


def queue_name(queue: TemplateResource) -> str:
    return queue.text("QueueName", queue.physical_name)


def name_of_function(function: TemplateResource) -> str:
    """Return a function's name in the Invoke API, also if the name that it is given cannot be resolved."""
    try:
        return function.text("FunctionName", function.physical_name)
    except TemplateError:
        return function.physical_name


def nested_stack_name(stack: TemplateResource) -> str:
    # CloudFormation derives it from the parent's name and the logical id, and appends a random text.
    return f"{stack.names.values['AWS::StackName']}-{stack.logical_id}-LOCAL"


def _text_or_reason(resource: TemplateResource, name: str) -> str | Unresolvable:
    try:
        return resource.text(name)
    except TemplateError as error:
        return Unresolvable(str(error))


class _LocalNames:
    def __init__(self, parameters: TemplateNames, resources: TemplateResources) -> None:
        self._parameters = parameters
        self._resources = resources
        self._values = dict(parameters.values)
        self._attributes = dict(parameters.attributes)

    def read(self, services: LocalServices) -> TemplateNames:
        for own in self._resources:
            name = self._values[own] = self._resources.resource(own).physical_name
            # No emulated service has such a resource: what a function sends there gets a 501 of the runner.
            service = self._resources.kind(own).lower().split("::")[1:2]
            self._attributes[f"{own}.Arn"] = f"arn:aws:{''.join(service)}:{REGION}:{ACCOUNT}:{name}"
        self._name_apis(services.api_url)
        for kind in NAMED:
            for resource in self._resources.of_type(kind, self._parameters):
                try:
                    self._name(kind, resource, services)
                except TemplateError as error:
                    self._values[resource.logical_id] = Unresolvable(str(error))
                    self._attributes.pop(f"{resource.logical_id}.Arn", None)
        return self._names()

    def _names(self) -> TemplateNames:
        return replace(self._parameters, values=self._values, attributes=self._attributes)

    def _name_apis(self, api_url: str) -> None:
        for implicit in (IMPLICIT_HTTP_API, IMPLICIT_REST_API):
            self._values.setdefault(implicit, implicit)
        apis = [name for name in self._resources if self._resources.kind(name) in types.HTTP_APIS]
        for api in (IMPLICIT_HTTP_API, *apis):
            self._attributes |= {f"{api}.ApiEndpoint": api_url, f"{api}.ApiId": self._values[api]}

    def _name(self, kind: str, resource: TemplateResource, services: LocalServices) -> None:
        values, attributes, own = self._values, self._attributes, resource.logical_id
        match kind:
            case types.ALIAS:
                values[own] = resource.text("AliasName")
            case types.LAYER:
                values[own] = layer_arn(resource)
            case types.FUNCTION:
                self._name_function(resource)
            case types.QUEUE:
                name = queue_name(resource)
                values[own] = f"{services.sqs_url}/{ACCOUNT}/{name}"
                attributes |= {f"{own}.Arn": queue_arn(name), f"{own}.QueueName": name}
            case types.TABLE:
                name = values[own] = resource.text("TableName", resource.physical_name)
                attributes[f"{own}.Arn"] = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"
            case types.BUCKET:
                name = values[own] = bucket_name(resource)
                attributes[f"{own}.Arn"] = f"arn:aws:s3:::{name}"
            case types.KEY:
                own_arn = key_arn(resource.physical_name)
                arn = attributes[f"{own}.Arn"] = services.key_arns.get(resource.name, own_arn)
                key_id = arn if isinstance(arn, Unresolvable) else arn.rpartition("/")[2]
                values[own] = attributes[f"{own}.KeyId"] = key_id
            case types.STACK | types.APPLICATION:
                values[own] = stack_id(nested_stack_name(resource))
            case types.SETTINGS_VERSION:
                values[own] = "1"
            case types.SSM_PARAMETER:
                values[own] = resource.text("Name", resource.physical_name)
                every = replace(resource, names=self._names())
                attributes |= {f"{own}.{name}": _text_or_reason(every, name) for name in ("Type", "Value")}

    def _name_function(self, function: TemplateResource) -> None:
        own, name = function.logical_id, name_of_function(function)
        self._values[own] = name
        self._attributes[f"{own}.Arn"] = function_arn(name)
        # SAM generates a role for a function without one.
        role = self._values.setdefault(f"{own}Role", f"{own}Role")
        self._attributes.setdefault(f"{own}Role.Arn", f"arn:aws:iam::{ACCOUNT}:role/{role}")
        if alias := function.text("AutoPublishAlias", ""):
            # SAM accepts the function's property and the logical id of the generated resource.
            self._values[f"{own}.Alias"] = function_arn(name, alias)
            self._values[f"{own}Alias{alias}"] = function_arn(name, alias)
            self._values[f"{own}.Version"] = function_arn(name, LATEST)  # the only version
            self._attributes[f"{own}.Version.Version"] = LATEST
