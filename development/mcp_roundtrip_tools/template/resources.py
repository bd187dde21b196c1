"""The resources that exist under a template's conditions, and their names and ARNs on this computer.

Source: SAM developer guide, "Globals section".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds, is_intrinsic, resolve
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
from mcp_roundtrip_tools.template.yaml_reader import scalar_text


@dataclass(frozen=True, slots=True)
class TemplateResource:
    """The properties of a resource of the template in `folder`. Methods raise TemplateError, which names it.

    `stack` is the name of its nested stack, such as `Platform`; empty for the application's template.
    """

    logical_id: str
    kind: str
    """The type, such as `AWS::SQS::Queue`."""
    properties: Mapping[str, Any]
    names: TemplateNames
    folder: Path
    stack: str = ""

    @property
    def name(self) -> str:
        """The logical id with the name of the nested stack, such as `Platform.StateKey`."""
        return f"{self.stack}.{self.logical_id}" if self.stack else self.logical_id

    @property
    def physical_name(self) -> str:
        """The name on this computer of a resource that has none of its own. Queues' names have no dots."""
        return self.name.replace(".", "-")

    def part(self, name: str, properties: Mapping[str, Any]) -> TemplateResource:
        """Return an object within the properties as a resource of its own."""
        return replace(self, logical_id=f"{self.logical_id}.{name}", properties=properties)

    def get(self, name: str, default: Any = None) -> Any:
        value = self.resolve(name, self.properties.get(name))
        return default if value is None else value

    def resolve(self, name: str, node: Any) -> Any:
        """Return the value of `node`, which is a part of the property `name`."""
        try:
            return resolve(node, self.names)
        except Unresolvable as error:
            raise TemplateError(f"{self.name}.{name}: {error}") from None

    def members(self, *names: str) -> Iterator[tuple[str, Any]]:
        """Yield the members of an object within a property, unresolved."""
        node: Any = self.properties
        for name in names:
            node = node.get(name) or {}
            if is_intrinsic(node):
                node = self.resolve(name, node) or {}
            if not isinstance(node, dict):
                raise TemplateError(f"{self.name}.{name}: must be an object")
        yield from node.items()

    def get_known(self, name: str) -> dict[str, Any]:
        """Return the members of an object that can be resolved without a deployment."""
        found = {}
        with suppress(TemplateError):
            for member, node in self.members(name):
                with suppress(TemplateError):
                    found[member] = self.resolve(name, node)
        return found

    def text(self, name: str, default: str | None = None) -> str:
        return self.as_text(name, self.get(name, default))

    def as_text(self, name: str, value: Any) -> str:
        try:
            return scalar_text(value)
        except TypeError:
            problem = "is missing" if value is None else "must be a string"
            raise TemplateError(f"{self.name}.{name}: {problem}") from None

    def number(self, name: str, default: float) -> float:
        try:
            return float(self.get(name, default))
        except (TypeError, ValueError):
            raise TemplateError(f"{self.name}.{name}: must be a number") from None

    def folder_of(self, name: str) -> Path:
        """Return the folder that a property names, relative to the template."""
        folder = self.folder / self.text(name)
        if not folder.is_dir():
            raise TemplateError(f"{self.name}.{name}: there is no folder {folder}")
        return folder.resolve()


FUNCTION: Final = "AWS::Serverless::Function"
HTTP_APIS: Final = ("AWS::Serverless::HttpApi", "AWS::ApiGatewayV2::Api")
REST_APIS: Final = ("AWS::Serverless::Api", "AWS::ApiGateway::RestApi")
TABLES: Final = ("AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable", "AWS::Serverless::SimpleTable")

NESTED: Final = {"AWS::Serverless::Application": "Location", "AWS::CloudFormation::Stack": "TemplateURL"}
"""The types of nested stacks, with the property that names the template."""


def read_resources(
    document: Mapping[str, Any], names: TemplateNames, folder: Path, stack: str = ""
) -> tuple[dict[str, TemplateResource], dict[str, str]]:
    """Return the resources by logical id, and why conditions have no value, by name. Raises TemplateError."""
    found: dict[str, TemplateResource] = {}
    problems: dict[str, str] = {}
    shared = (document.get("Globals") or {}).get("Function") or {}
    for logical_id, written in document["Resources"].items():
        name = f"{stack}.{logical_id}" if stack else logical_id
        if logical_id.startswith("Fn::"):
            problems[name] = f"{name}: transforms other than that of SAM are not run"
            continue
        if not isinstance(written, dict) or not isinstance(written.get("Type"), str):
            raise TemplateError(f"{name}: a resource needs a Type")
        kind, properties = written["Type"], written.get("Properties") or {}
        if not isinstance(properties, dict):
            raise TemplateError(f"{name}.Properties: must be an object")
        if kind == FUNCTION:
            ignored = written.get("IgnoreGlobals") or ()
            used = {key: value for key, value in shared.items() if ignored != "*" and key not in ignored}
            properties = _merged(used, properties)
        try:
            if "Condition" in written and not holds(written["Condition"], names):
                continue
        except Unresolvable as error:
            problems[name] = f"{name}.Condition: {error}"
            if kind != FUNCTION:  # the routes of a function answer with the reason
                continue
        found[logical_id] = TemplateResource(logical_id, kind, properties, names, folder, stack)
    return found, problems


def _merged(base: Any, over: Any) -> Any:
    """Merge a property with that of Globals as SAM does: objects are merged, lists are concatenated."""
    if (
        isinstance(base, dict)
        and isinstance(over, dict)
        and not is_intrinsic(base)
        and not is_intrinsic(over)
    ):
        return {
            **base,
            **{key: _merged(base[key], value) if key in base else value for key, value in over.items()},
        }
    if isinstance(base, list) and isinstance(over, list):
        return base + over
    return over


IMPLICIT_HTTP_API: Final = "ServerlessHttpApi"
IMPLICIT_REST_API: Final = "ServerlessRestApi"
"""The APIs that SAM creates for events without an ApiId or a RestApiId."""

LOCAL_URL: Final = "http://127.0.0.1"


@dataclass(frozen=True, slots=True)
class LocalServices:
    """The URLs of the API and of SQS on this computer, and what tells a run's keys from those of others."""

    api_url: str
    sqs_url: str
    key_set: str


def layer_arn(layer: TemplateResource) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:{layer.physical_name}:1"


def table_name(table: TemplateResource) -> str:
    return table.text("TableName", table.physical_name)


def bucket_name(bucket: TemplateResource) -> str:
    # CloudFormation derives a name from the stack's and the logical id; bucket names are lower-case.
    return bucket.text("BucketName", f"{STACK_NAME}-{bucket.physical_name.lower()}")


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
        case "AWS::KMS::Alias":
            return resource.text("AliasName")
        case "AWS::Serverless::LayerVersion":
            return layer_arn(resource)
        case "AWS::Serverless::Function":
            return name_of_function(resource)
        case "AWS::SQS::Queue":
            return f"{services.sqs_url}/{ACCOUNT}/{queue_name(resource)}"
        case "AWS::DynamoDB::Table" | "AWS::DynamoDB::GlobalTable" | "AWS::Serverless::SimpleTable":
            return table_name(resource)
        case "AWS::S3::Bucket":
            return bucket_name(resource)
        case "AWS::KMS::Key":
            return key_id(resource, services)
        case "AWS::CloudFormation::Stack" | "AWS::Serverless::Application":
            return stack_id(nested_stack_name(resource))
        case "AWS::AppConfig::HostedConfigurationVersion":
            return "1"
        case "AWS::SSM::Parameter":
            return resource.text("Name", resource.physical_name)
    return resource.physical_name


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
        case ("AWS::SQS::Queue", "Arn"):
            return queue_arn(queue_name(resource))
        case ("AWS::SQS::Queue", "QueueName"):
            return queue_name(resource)
        case ("AWS::DynamoDB::Table" | "AWS::DynamoDB::GlobalTable" | "AWS::Serverless::SimpleTable", "Arn"):
            return f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{table_name(resource)}"
        case ("AWS::S3::Bucket", "Arn"):
            return f"arn:aws:s3:::{bucket_name(resource)}"
        case ("AWS::KMS::Key", "Arn"):
            return key_arn(key_id(resource, services))
        case ("AWS::SSM::Parameter", "Type" | "Value"):
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
