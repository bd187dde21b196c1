"""The resources of a template that exist under its conditions, with the properties of Globals.

Source: AWS SAM developer guide, "Globals section".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from mcp_roundtrip_tools.template.applications import APPLICATION, is_behind_front_door
from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds, is_intrinsic
from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.resource import TemplateResource

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

_NOT_RUN: Final = {
    "AWS::Lambda::Function": "only AWS::Serverless::Function is run",
    APPLICATION: "a nested stack is not run; serve its own template with --template",
    "AWS::CloudFormation::Stack": "a nested stack is not run; serve its own template with --template",
}


class TemplateResources:
    """The resources of a template document. Raises TemplateError if it is not a template.

    `problems` has the resources whose condition cannot be evaluated, by logical id, with the reason.
    """

    def __init__(self, document: Mapping[str, Any], names: TemplateNames) -> None:
        self.problems: dict[str, str] = {}
        self._globals: Mapping[str, Any] = document.get("Globals") or {}
        self._resources = {
            name: resource
            for name, resource in document["Resources"].items()
            if self._exists(name, resource, names)
        }

    def __iter__(self) -> Iterator[str]:
        return iter(self._resources)

    def kind(self, name: str) -> str:
        """Return the type of a resource by its logical id; an empty text if it does not exist."""
        return str(self._resources[name]["Type"]) if name in self._resources else ""

    def left_out(self) -> LeftOut:
        """Return what is left out whatever its properties are, to which readers add."""
        found = LeftOut()
        for name, resource in self._resources.items():
            if resource["Type"] in _NOT_RUN and not is_behind_front_door(resource):
                found.targets[name] = f"{name}: {_NOT_RUN[resource['Type']]}"
        for name, problem in self.problems.items():
            if self.kind(name) != FUNCTION:
                found.notes.append(problem)
        return found

    def of_type(self, kind: str, names: TemplateNames) -> Iterator[TemplateResource]:
        """Yield the resources of a type, which are resolved with these names."""
        for name, resource in self._resources.items():
            if resource["Type"] == kind:
                properties = resource.get("Properties") or {}
                if kind == FUNCTION:
                    ignored = resource.get("IgnoreGlobals") or ()
                    shared = self.globals_of("Function").items()
                    used = {key: value for key, value in shared if ignored != "*" and key not in ignored}
                    properties = _merged(used, properties)
                yield TemplateResource(name, properties, names)

    def _exists(self, name: str, resource: Any, names: TemplateNames) -> bool:
        if name.startswith("Fn::"):
            self.problems[name] = f"{name}: the transform AWS::LanguageExtensions is not run"
            return False
        if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
            raise TemplateError(f"{name}: a resource needs a Type")
        try:
            return "Condition" not in resource or holds(resource["Condition"], names)
        except Unresolvable as error:
            self.problems[name] = f"{name}.Condition: {error}"
            return bool(resource["Type"] == FUNCTION)  # its routes answer with the reason

    def globals_of(self, kind: str) -> Mapping[str, Any]:
        """Return the properties that Globals gives to all resources of a kind, such as "Function"."""
        return self._globals.get(kind) or {}


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
