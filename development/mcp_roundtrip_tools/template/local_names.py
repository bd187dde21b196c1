"""The names and ARNs that a template's resources have on this computer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_roundtrip_tools.template import resources as types
from mcp_roundtrip_tools.template.intrinsics import Unresolvable
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
from mcp_roundtrip_tools.template.resources import TemplateResource

IMPLICIT_HTTP_API: Final = "ServerlessHttpApi"
IMPLICIT_REST_API: Final = "ServerlessRestApi"
"""The APIs that SAM creates for events without an ApiId or a RestApiId."""

KeyArns = Mapping[str, "str | Unresolvable"]
"""The ARN of each key by its name, such as `Platform.StateKey`, or why it has none here."""


@dataclass(frozen=True, slots=True)
class LocalServices:
    """What a template has on this computer: its keys, and the URLs of its API and of SQS."""

    key_arns: KeyArns = field(default_factory=dict)
    api_url: str = "http://127.0.0.1"
    sqs_url: str = "http://127.0.0.1"

    def arn_of_key(self, key: TemplateResource) -> str | Unresolvable:
        return self.key_arns.get(key.name, key_arn(key.physical_name))


def layer_arn(layer: TemplateResource) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:{layer.physical_name}:1"


def table_name(table: TemplateResource) -> str:
    return table.text("TableName", table.physical_name)


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


def reference_to(resource: TemplateResource, services: LocalServices) -> Any:
    """Return what `!Ref` returns for a resource. Raises TemplateError."""
    match resource.kind:
        case types.ALIAS:
            return resource.text("AliasName")
        case types.LAYER:
            return layer_arn(resource)
        case types.FUNCTION:
            return name_of_function(resource)
        case types.QUEUE:
            return f"{services.sqs_url}/{ACCOUNT}/{queue_name(resource)}"
        case types.TABLE:
            return table_name(resource)
        case types.BUCKET:
            return bucket_name(resource)
        case types.KEY:
            arn = services.arn_of_key(resource)
            return arn if isinstance(arn, Unresolvable) else arn.rpartition("/")[2]
        case types.STACK | types.APPLICATION:
            return stack_id(nested_stack_name(resource))
        case types.SETTINGS_VERSION:
            return "1"
        case types.SSM_PARAMETER:
            return resource.text("Name", resource.physical_name)
    return resource.physical_name


def attribute_of(resource: TemplateResource, attribute: str, services: LocalServices) -> Any:
    """Return what `!GetAtt` returns for a resource. Raises TemplateError, and KeyError."""
    match resource.kind, attribute:
        case (types.HTTP_API | types.RAW_HTTP_API, "ApiEndpoint"):
            return services.api_url
        case (types.HTTP_API | types.RAW_HTTP_API, "ApiId") | (types.KEY, "KeyId"):
            return reference_to(resource, services)
        case (types.FUNCTION, "Arn"):
            return function_arn(name_of_function(resource))
        case (types.FUNCTION, "Version.Version"):
            return LATEST  # the only version
        case (types.QUEUE, "Arn"):
            return queue_arn(queue_name(resource))
        case (types.QUEUE, "QueueName"):
            return queue_name(resource)
        case (types.TABLE, "Arn"):
            return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table_name(resource)}"
        case (types.BUCKET, "Arn"):
            return f"arn:aws:s3:::{bucket_name(resource)}"
        case (types.KEY, "Arn"):
            return services.arn_of_key(resource)
        case (types.SSM_PARAMETER, "Type" | "Value"):
            return resource.text(attribute)
        case (_, "Arn"):
            # No emulated service has such a resource: what a function sends there gets a 501 of the runner.
            service = "".join(resource.kind.lower().split("::")[1:2])
            return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource.physical_name}"
    raise KeyError(attribute)


def generated_reference(function: TemplateResource, name: str) -> str | None:
    """Return what `!Ref` returns for a resource that SAM generates for a function: role, alias, version."""
    own, function_name = function.logical_id, name_of_function(function)
    if name == f"{own}Role":
        return name
    alias = function.text("AutoPublishAlias", "")
    # SAM accepts the function's property and the logical id of the generated resource.
    if alias and name in (f"{own}.Alias", f"{own}Alias{alias}"):
        return function_arn(function_name, alias)
    return function_arn(function_name, LATEST) if alias and name == f"{own}.Version" else None
