"""Read a SAM template: its functions, layers, routes, keys, queues, tables and buckets.

Sources: AWS SAM developer guide, "AWS SAM resources and properties" and "Globals section".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mcp_roundtrip.settings import PREFIX
from mcp_roundtrip_local.template.applications import nested_templates, with_nested_stacks
from mcp_roundtrip_local.template.events import routes_of
from mcp_roundtrip_local.template.intrinsics import TemplateNames, Unresolvable, holds, is_intrinsic
from mcp_roundtrip_local.template.invoke_configs import read_invoke_configs
from mcp_roundtrip_local.template.model import (
    ACCOUNT,
    LATEST,
    REGION,
    STACK_NAME,
    Application,
    EventInvokeConfig,
    Function,
    Storage,
    TemplateError,
    function_arn,
    queue_arn,
)
from mcp_roundtrip_local.template.parameters import PSEUDO_PARAMETERS, resolve_parameters
from mcp_roundtrip_local.template.queues import queue_name, read_queues
from mcp_roundtrip_local.template.resource import TemplateResource
from mcp_roundtrip_local.template.validation import check_rules, check_settings
from mcp_roundtrip_local.template.yaml_reader import load

FUNCTION = "AWS::Serverless::Function"
LAYER = "AWS::Serverless::LayerVersion"
HTTP_APIS = ("AWS::Serverless::HttpApi", "AWS::ApiGatewayV2::Api")
QUEUE = "AWS::SQS::Queue"
TABLE = "AWS::DynamoDB::Table"
BUCKET = "AWS::S3::Bucket"
TABLE_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")
EVENT_SOURCE = "AWS::Lambda::EventSourceMapping"
INVOKE_CONFIG = "AWS::Lambda::EventInvokeConfig"
KEY = "AWS::KMS::Key"
ALIAS = "AWS::KMS::Alias"


@dataclass(frozen=True, slots=True)
class TemplateKey:
    """A KMS key of the template, with the names of its aliases."""

    logical_id: str
    spec: str
    usage: str
    aliases: tuple[str, ...]


class Template:
    """A template with its parameters.

    Raises TemplateError if it cannot be read, or if a parameter is missing or not allowed.
    """

    def __init__(self, path: Path, parameters: Mapping[str, str]) -> None:
        self.path = path.resolve()
        document = load(self.path)
        self._nested = nested_templates(document, self.path.parent)
        document = with_nested_stacks(document, self.path.parent)
        self._globals: Mapping[str, Any] = document.get("Globals") or {}
        self._names = TemplateNames(
            values={**PSEUDO_PARAMETERS, **resolve_parameters(document.get("Parameters", {}), parameters)},
            attributes={},
            mappings=document.get("Mappings", {}),
            conditions=document.get("Conditions", {}),
        )
        check_rules(document.get("Rules") or {}, self._names)
        self._resources = {
            name: resource
            for name, resource in document.get("Resources", {}).items()
            if self._exists(name, resource)
        }

    def keys(self) -> tuple[TemplateKey, ...]:
        """Return the KMS keys. `application` needs their ARNs."""
        aliases: dict[str, list[str]] = {}
        for alias in self._of_type(ALIAS, self._local_names()):
            aliases.setdefault(alias.text("TargetKeyId"), []).append(alias.text("AliasName"))
        return tuple(
            TemplateKey(
                key.name,
                key.text("KeySpec", "SYMMETRIC_DEFAULT"),
                key.text("KeyUsage", "ENCRYPT_DECRYPT"),
                tuple(aliases.get(key.name, ())),
            )
            for key in self._of_type(KEY, self._local_names())
        )

    def application(self, key_arns: Mapping[str, str], api_url: str, sqs_url: str = "") -> Application:
        """Return the resolved application. `key_arns` has the ARNs of the created keys by logical id."""
        names = self._local_names(key_arns, api_url, sqs_url)
        layers = {
            layer_arn(layer.name): _layer_folder(layer.folder("ContentUri", self.path.parent))
            for layer in self._of_type(LAYER, names)
        }
        resources = list(self._of_type(FUNCTION, names))
        configs = read_invoke_configs(resources, self._of_type(INVOKE_CONFIG, names))
        functions = [
            replace(
                function,
                event_invoke=configs.get(function.name, EventInvokeConfig()),
                environment=_with_audience(function.environment, api_url),
            )
            for function in (self._function(resource, layers) for resource in resources)
        ]
        return Application(
            {function.name: function for function in functions},
            read_queues(self._of_type(QUEUE, names), self._of_type(EVENT_SOURCE, names), resources),
            tuple(
                route
                for resource, function in zip(resources, functions, strict=True)
                for route in routes_of(resource, function.name)
            ),
            (
                self.path,
                *self._nested,
                *dict.fromkeys([f.code for f in functions] + [d for f in functions for d in f.layers]),
            ),
            self._storage(names),
            self._cors(names),
        )

    def _function(self, resource: TemplateResource, layers: Mapping[str, Path]) -> Function:
        if resource.get("PackageType", "Zip") != "Zip" or "InlineCode" in resource.properties:
            raise TemplateError(
                f"{resource.name}: only functions with Handler and a local CodeUri can be run"
            )
        arns = resource.get("Layers", [])
        for arn in arns:
            if arn not in layers:
                raise TemplateError(f"{resource.name}.Layers: {arn} is not a layer of this template")
        variables = resource.get("Environment", {}).get("Variables", {})
        logging = resource.get_known("LoggingConfig")
        function = Function(
            name=resource.text("FunctionName", resource.name),
            handler=resource.text("Handler"),
            code=resource.folder("CodeUri", self.path.parent),
            layers=tuple(layers[arn] for arn in arns),
            environment={
                name: resource.as_text(f"Environment.{name}", value) for name, value in variables.items()
            },
            timeout_s=resource.number("Timeout", 3),
            memory_mb=int(resource.number("MemorySize", 128)),
            alias=resource.text("AutoPublishAlias", "") or None,
            log_format=str(logging.get("LogFormat", "")),
            log_level=str(logging.get("ApplicationLogLevel", "")),
            dead_letter=resource.get("DeadLetterQueue", {}).get("TargetArn"),
        )
        written = (resource.properties.get("Environment") or {}).get("Variables") or {}
        check_settings(function, written, self._names.values)
        return function

    def _cors(self, names: TemplateNames) -> Any:
        """Return the CORS configuration of the first API that has one, otherwise that of Globals."""
        shared = TemplateResource("Globals.HttpApi", self._globals_of("HttpApi"), names).get(
            "CorsConfiguration"
        )
        apis = (api for kind in HTTP_APIS for api in self._of_type(kind, names))
        return next((cors for api in apis if (cors := api.get("CorsConfiguration")) is not None), shared)

    def _storage(self, names: TemplateNames) -> Storage:
        tables = {
            table.text("TableName", table.name): {
                name: table.get(name) for name in TABLE_PROPERTIES if name in table.properties
            }
            for table in self._of_type(TABLE, names)
        }
        return Storage(tables, tuple(map(_bucket_name, self._of_type(BUCKET, names))))

    def _globals_of(self, kind: str) -> Mapping[str, Any]:
        return self._globals.get(kind) or {}

    def _exists(self, name: str, resource: Any) -> bool:
        if not isinstance(resource, dict) or "Type" not in resource:
            raise TemplateError(f"{name}: a resource needs a Type")
        try:
            return "Condition" not in resource or holds(resource["Condition"], self._names)
        except Unresolvable as error:
            raise TemplateError(f"{name}.Condition: {error}") from None

    def _of_type(self, kind: str, names: TemplateNames) -> Iterator[TemplateResource]:
        for name, resource in self._resources.items():
            if resource["Type"] == kind:
                properties = resource.get("Properties") or {}
                if kind == FUNCTION:
                    ignored = resource.get("IgnoreGlobals") or ()
                    shared = self._globals_of("Function").items()
                    used = {key: value for key, value in shared if ignored != "*" and key not in ignored}
                    properties = _merged(used, properties)
                yield TemplateResource(name, properties, names)

    def _local_names(
        self, key_arns: Mapping[str, str] | None = None, api_url: str = "", sqs_url: str = ""
    ) -> TemplateNames:
        """Return the template's names with those of its resources: their names and ARNs on this computer."""
        values, attributes = dict(self._names.values), dict(self._names.attributes)
        values.update((name, name) for name in self._resources)
        for alias in self._of_type(ALIAS, self._names):
            values[alias.name] = alias.text("AliasName")
        for layer in self._of_type(LAYER, self._names):
            values[layer.name] = layer_arn(layer.name)
        for kind in HTTP_APIS:
            for api in self._of_type(kind, self._names):
                attributes |= {f"{api.name}.ApiEndpoint": api_url, f"{api.name}.ApiId": api.name}
        for function in self._of_type(FUNCTION, self._names):
            name = values[function.name] = function.text("FunctionName", function.name)
            attributes[f"{function.name}.Arn"] = function_arn(name)
            if alias_name := function.text("AutoPublishAlias", ""):
                # SAM accepts the function's property and the logical id of the generated resource.
                values[f"{function.name}.Alias"] = function_arn(name, alias_name)
                values[f"{function.name}Alias{alias_name}"] = function_arn(name, alias_name)
                values[f"{function.name}.Version"] = function_arn(name, LATEST)  # the only version
                attributes[f"{function.name}.Version.Version"] = LATEST
        for queue in self._of_type(QUEUE, self._names):
            name = queue_name(queue)
            values[queue.name] = f"{sqs_url}/{ACCOUNT}/{name}"
            attributes |= {f"{queue.name}.Arn": queue_arn(name), f"{queue.name}.QueueName": name}
        for table in self._of_type(TABLE, self._names):
            name = values[table.name] = table.text("TableName", table.name)
            attributes[f"{table.name}.Arn"] = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/{name}"
        for bucket in self._of_type(BUCKET, self._names):
            name = values[bucket.name] = _bucket_name(bucket)
            attributes[f"{bucket.name}.Arn"] = f"arn:aws:s3:::{name}"
        for key in self._of_type(KEY, self._names):
            arn = (key_arns or {}).get(key.name, key.name)
            values[key.name] = attributes[f"{key.name}.KeyId"] = arn.rpartition("/")[2]
            attributes[f"{key.name}.Arn"] = arn
        return TemplateNames(values, attributes, self._names.mappings, self._names.conditions)


def layer_arn(logical_id: str) -> str:
    return f"arn:aws:lambda:{REGION}:{ACCOUNT}:layer:{logical_id}:1"


def _with_audience(environment: Mapping[str, str], api_url: str) -> Mapping[str, str]:
    """Add the audience if the layer would derive it: no host on this computer is one that AWS assigns."""
    if not any(name.startswith(PREFIX) for name in environment):
        return environment
    derives = not environment.get("MCP_AUDIENCE") and not environment.get("MCP_TASK_TABLE")
    return {**environment, "MCP_AUDIENCE": api_url} if derives else environment


def _layer_folder(content: Path) -> Path:
    # A built layer has its packages in python/, the source of a layer that `sam build` builds at the top.
    built = content / "python"
    return built if built.is_dir() else content


def _bucket_name(bucket: TemplateResource) -> str:
    # CloudFormation derives a name from the stack's and the logical id; bucket names are lower-case.
    return bucket.text("BucketName", f"{STACK_NAME}-{bucket.name.lower()}")


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
