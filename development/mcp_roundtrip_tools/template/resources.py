"""The resources of a template that exist under its conditions, with the properties of Globals.

Source: AWS SAM developer guide, "Globals section".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds, is_intrinsic, resolve
from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import scalar_text


@dataclass(frozen=True, slots=True)
class TemplateResource:
    """The properties of a resource of the template in `folder`.

    `stack` is the name of its nested stack, such as `Platform`; empty for that of the application's template.
    Methods raise TemplateError, which names the resource and property.
    """

    logical_id: str
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
LAYER: Final = "AWS::Serverless::LayerVersion"
HTTP_API: Final = "AWS::Serverless::HttpApi"
RAW_HTTP_API: Final = "AWS::ApiGatewayV2::Api"
HTTP_APIS: Final = (HTTP_API, RAW_HTTP_API)
ROUTE: Final = "AWS::ApiGatewayV2::Route"
INTEGRATION: Final = "AWS::ApiGatewayV2::Integration"
QUEUE: Final = "AWS::SQS::Queue"
TABLE: Final = "AWS::DynamoDB::Table"
BUCKET: Final = "AWS::S3::Bucket"
EVENT_SOURCE: Final = "AWS::Lambda::EventSourceMapping"
INVOKE_CONFIG: Final = "AWS::Lambda::EventInvokeConfig"
KEY: Final = "AWS::KMS::Key"
ALIAS: Final = "AWS::KMS::Alias"
APPLICATION: Final = "AWS::Serverless::Application"
STACK: Final = "AWS::CloudFormation::Stack"
SSM_PARAMETER: Final = "AWS::SSM::Parameter"
SETTINGS_VERSION: Final = "AWS::AppConfig::HostedConfigurationVersion"

NESTED: Final = {APPLICATION: "Location", STACK: "TemplateURL"}
"""The types of nested stacks, with the property that names the template."""

_NOT_RUN: Final = {
    "AWS::Lambda::Function": "only AWS::Serverless::Function is run",
}


class TemplateResources:
    """The resources of a template document. Raises TemplateError if it is not a template.

    `names` are those of its parameters and resources. `folder` is that of the template, and `stack` the
    name of its nested stack. `problems` has the resources whose condition cannot be evaluated, by name, with
    the reason.
    """

    def __init__(
        self, document: Mapping[str, Any], names: TemplateNames, folder: Path, stack: str = ""
    ) -> None:
        self.problems: dict[str, str] = {}
        self._names = names
        self._folder = folder
        self._stack = stack
        self._globals: Mapping[str, Any] = document.get("Globals") or {}
        self._resources = {
            name: resource for name, resource in document["Resources"].items() if self._exists(name, resource)
        }

    def __contains__(self, logical_id: object) -> bool:
        return logical_id in self._resources

    def kind(self, logical_id: str) -> str:
        return str(self._resources[logical_id]["Type"])

    def resource(self, logical_id: str) -> TemplateResource:
        resource = self._resources[logical_id]
        properties = resource.get("Properties") or {}
        if resource["Type"] == FUNCTION:
            ignored = resource.get("IgnoreGlobals") or ()
            shared = (self._globals.get("Function") or {}).items()
            used = {key: value for key, value in shared if ignored != "*" and key not in ignored}
            properties = _merged(used, properties)
        return TemplateResource(logical_id, properties, self._names, self._folder, self._stack)

    def of_type(self, kind: str) -> Iterator[TemplateResource]:
        """Yield the resources of a type."""
        for logical_id, resource in self._resources.items():
            if resource["Type"] == kind:
                yield self.resource(logical_id)

    def globals_of(self, kind: str) -> TemplateResource:
        """Return the properties that Globals gives to all resources of a kind, such as "Function"."""
        properties = self._globals.get(kind) or {}
        return TemplateResource(f"Globals.{kind}", properties, self._names, self._folder, self._stack)

    def leave_out(self, left_out: LeftOut) -> None:
        """Add what is left out whatever its properties are."""
        for kind, reason in _NOT_RUN.items():
            for resource in self.of_type(kind):
                left_out.targets[resource.physical_name] = f"{resource.name}: {reason}"
        functions = {each.name for each in self.of_type(FUNCTION)}
        left_out.notes += [problem for name, problem in self.problems.items() if name not in functions]

    def _exists(self, logical_id: str, resource: Any) -> bool:
        name = f"{self._stack}.{logical_id}" if self._stack else logical_id
        if logical_id.startswith("Fn::"):
            self.problems[name] = f"{name}: the transform AWS::LanguageExtensions is not run"
            return False
        if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
            raise TemplateError(f"{name}: a resource needs a Type")
        try:
            return "Condition" not in resource or holds(resource["Condition"], self._names)
        except Unresolvable as error:
            self.problems[name] = f"{name}.Condition: {error}"
            return bool(resource["Type"] == FUNCTION)  # its routes answer with the reason


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
