"""The names and ARNs that a template's resources have on this computer."""

from dataclasses import dataclass
from typing import Any, Final

from mcp_roundtrip_tools.template.intrinsics import Unresolvable
from mcp_roundtrip_tools.template.model import (
    ACCOUNT,
    LATEST,
    REGION,
    STACK_NAME,
    TemplateError,
    function_arn,
    key_arn,
)
from mcp_roundtrip_tools.template.parameters import stack_id
from mcp_roundtrip_tools.template.resources import TABLES, TemplateResource

IMPLICIT_HTTP_API: Final = "ServerlessHttpApi"
IMPLICIT_REST_API: Final = "ServerlessRestApi"
"""The APIs that SAM creates for events without an ApiId or a RestApiId."""

LOCAL_URL: Final = "http://127.0.0.1"


@dataclass(frozen=True, slots=True)
class LocalServices:
    """The URLs of the API and of SQS on this computer, and the end of the ids of a run's KMS keys."""

    api_url: str
    sqs_url: str
    key_set: str


def layer_arn(layer: TemplateResource) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:{layer.physical_name}:1"


_NAMES: Final = {
    "AWS::KMS::Alias": "AliasName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SQS::Queue": "QueueName",
    "AWS::SSM::Parameter": "Name",
    **dict.fromkeys(TABLES, "TableName"),
}
"""The property with the name of a resource, by type."""


def name_of(resource: TemplateResource) -> str:
    """Return the name of a resource, other than a function. Raises TemplateError."""
    default = resource.physical_name
    if resource.kind == "AWS::S3::Bucket":
        # CloudFormation derives a name from the stack's and the logical id; bucket names are lower-case.
        default = f"{STACK_NAME}-{default.lower()}"
    return resource.text(_NAMES[resource.kind], default) if resource.kind in _NAMES else default


KEY_KINDS: Final = {"ECC_NIST_P256": "SIGN_VERIFY", "HMAC_256": "GENERATE_VERIFY_MAC"}
"""The kinds of KMS keys that can exist on this computer: KeyUsage by KeySpec."""


def key_id(key: TemplateResource, services: LocalServices) -> str:
    """Return the id of a key. Raises TemplateError, and Unresolvable if no such key is emulated."""
    spec, usage = key.text("KeySpec", "SYMMETRIC_DEFAULT"), key.text("KeyUsage", "ENCRYPT_DECRYPT")
    if KEY_KINDS.get(spec) != usage:
        raise Unresolvable(f"the key {key.name} is not emulated: {spec} keys for {usage} are not")
    return f"{key.physical_name}-{services.key_set}"


def key_name(key: str, key_set: str) -> str:
    """Return the name of a key by its ARN or id; another text as it is. Logical ids have no hyphens."""
    name, end, _ = key.rpartition("/")[2].rpartition(f"-{key_set}")
    return name.replace("-", ".") if end else key


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
        case "AWS::Serverless::LayerVersion":
            return layer_arn(resource)
        case "AWS::Serverless::Function":
            return name_of_function(resource)
        case "AWS::SQS::Queue":
            return f"{services.sqs_url}/{ACCOUNT}/{name_of(resource)}"
        case "AWS::KMS::Key":
            return key_id(resource, services)
        case "AWS::CloudFormation::Stack" | "AWS::Serverless::Application":
            return stack_id(nested_stack_name(resource))
        case "AWS::AppConfig::HostedConfigurationVersion":
            return "1"
    return name_of(resource)


def attribute_of(resource: TemplateResource, attribute: str, services: LocalServices) -> Any:
    """Return what `!GetAtt` returns for a resource. Raises TemplateError, and KeyError."""
    match resource.kind, attribute:
        case ("AWS::Serverless::HttpApi" | "AWS::ApiGatewayV2::Api", "ApiEndpoint"):
            return services.api_url
        case ("AWS::Serverless::HttpApi" | "AWS::ApiGatewayV2::Api", "ApiId") | ("AWS::KMS::Key", "KeyId"):
            return reference_to(resource, services)
        case ("AWS::Serverless::Function", "Arn"):
            return function_arn(name_of_function(resource))
        case ("AWS::Serverless::Function", "Version.Version"):
            return LATEST  # the only version
        case ("AWS::SQS::Queue", "QueueName"):
            return name_of(resource)
        case (kind, "Arn") if kind in TABLES:
            return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name_of(resource)}"
        case ("AWS::S3::Bucket", "Arn"):
            return f"arn:aws:s3:::{name_of(resource)}"
        case ("AWS::KMS::Key", "Arn"):
            return key_arn(key_id(resource, services))
        case ("AWS::SSM::Parameter", "Type" | "Value"):
            return resource.text(attribute)
        case (kind, "Arn"):
            # Of these only queues are emulated: what a function sends to others gets a 501 of the runner.
            service = "".join(kind.lower().split("::")[1:2])
            return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name_of(resource)}"
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
