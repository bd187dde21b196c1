"""The names and ARNs that a template's resources have on this computer."""

from __future__ import annotations

from collections.abc import Mapping
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
    queue_arn,
)
from mcp_roundtrip_tools.template.resource import TemplateResource
from mcp_roundtrip_tools.template.resources import TemplateResources

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
)
"""The types of resources whose names and ARNs an emulated service, or this runner, has."""

KeyArns = Mapping[str, "str | Unresolvable"]
"""The ARN of each key of the template by logical id, or why it has none here."""


def local_names(
    parameters: TemplateNames, resources: TemplateResources, key_arns: KeyArns, api_url: str, sqs_url: str
) -> TemplateNames:
    """Return the template's names with those of its resources.

    A resource whose name cannot be resolved is Unresolvable.
    """
    return _LocalNames(parameters, resources).read(key_arns, api_url, sqs_url)


def layer_arn(logical_id: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:{logical_id}:1"


def bucket_name(bucket: TemplateResource) -> str:
    # CloudFormation derives a name from the stack's and the logical id; bucket names are lower-case.
    return bucket.text("BucketName", f"{STACK_NAME}-{bucket.name.lower()}")


def queue_name(queue: TemplateResource) -> str:
    """Return the name of a queue on this computer: its own, otherwise its logical id."""
    return queue.text("QueueName", queue.name)


def name_of_function(function: TemplateResource) -> str:
    """Return a function's name in the Invoke API; its logical id if the name cannot be resolved."""
    try:
        return function.text("FunctionName", function.name)
    except TemplateError:
        return function.name


class _LocalNames:
    def __init__(self, parameters: TemplateNames, resources: TemplateResources) -> None:
        self._parameters = parameters
        self._resources = resources
        self._values = dict(parameters.values)
        self._attributes = dict(parameters.attributes)

    def read(self, key_arns: KeyArns, api_url: str, sqs_url: str) -> TemplateNames:
        for name in self._resources:
            self._values[name] = name
            # No emulated service has such a resource: what a function sends there gets a 501 of the runner.
            service = self._resources.kind(name).lower().split("::")[1:2]
            self._attributes[f"{name}.Arn"] = f"arn:aws:{''.join(service)}:{REGION}:{ACCOUNT}:{name}"
        self._name_apis(api_url)
        for kind in NAMED:
            for resource in self._resources.of_type(kind, self._parameters):
                try:
                    self._name(kind, resource, key_arns, sqs_url)
                except TemplateError as error:
                    self._values[resource.name] = Unresolvable(str(error))
                    self._attributes.pop(f"{resource.name}.Arn", None)
        names = self._parameters
        return TemplateNames(self._values, self._attributes, names.mappings, names.conditions)

    def _name_apis(self, api_url: str) -> None:
        for implicit in (IMPLICIT_HTTP_API, IMPLICIT_REST_API):
            self._values.setdefault(implicit, implicit)
        apis = [name for name in self._resources if self._resources.kind(name) in types.HTTP_APIS]
        for api in (IMPLICIT_HTTP_API, *apis):
            self._attributes |= {f"{api}.ApiEndpoint": api_url, f"{api}.ApiId": api}

    def _name(self, kind: str, resource: TemplateResource, key_arns: KeyArns, sqs_url: str) -> None:
        values, attributes, own = self._values, self._attributes, resource.name
        match kind:
            case types.ALIAS:
                values[own] = resource.text("AliasName")
            case types.LAYER:
                values[own] = layer_arn(own)
            case types.FUNCTION:
                self._name_function(resource)
            case types.QUEUE:
                name = queue_name(resource)
                values[own] = f"{sqs_url}/{ACCOUNT}/{name}"
                attributes |= {f"{own}.Arn": queue_arn(name), f"{own}.QueueName": name}
            case types.TABLE:
                name = values[own] = resource.text("TableName", own)
                attributes[f"{own}.Arn"] = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"
            case types.BUCKET:
                name = values[own] = bucket_name(resource)
                attributes[f"{own}.Arn"] = f"arn:aws:s3:::{name}"
            case types.KEY:
                arn = attributes[f"{own}.Arn"] = key_arns.get(own, own)
                key_id = arn if isinstance(arn, Unresolvable) else arn.rpartition("/")[2]
                values[own] = attributes[f"{own}.KeyId"] = key_id

    def _name_function(self, function: TemplateResource) -> None:
        own, name = function.name, name_of_function(function)
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
