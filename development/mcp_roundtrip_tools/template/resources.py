"""The resources that exist under a template's conditions (SAM developer guide, "Globals section")."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from mcp_roundtrip_tools.template.intrinsics import TemplateNames, Unresolvable, holds, is_intrinsic, resolve
from mcp_roundtrip_tools.template.model import TemplateError
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
            unused = {*ignored, *(properties.keys() & {"Architectures"})}  # the only list that is not joined
            used = {key: value for key, value in shared.items() if ignored != "*" and key not in unused}
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
