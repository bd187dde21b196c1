"""Read a SAM template: its functions, layers, routes, keys, queues, tables and buckets.

Sources: AWS SAM developer guide, "AWS SAM resources and properties" and "Globals section".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mcp_roundtrip_tools.template import resources as types
from mcp_roundtrip_tools.template.applications import nested_templates, with_nested_stacks
from mcp_roundtrip_tools.template.functions import FunctionReader
from mcp_roundtrip_tools.template.intrinsics import TemplateNames
from mcp_roundtrip_tools.template.invoke_configs import read_invoke_configs
from mcp_roundtrip_tools.template.left_out import LeftOut
from mcp_roundtrip_tools.template.local_names import (
    KeyArns,
    bucket_name,
    layer_arn,
    local_names,
    name_of_function,
)
from mcp_roundtrip_tools.template.model import Application, Function, Storage
from mcp_roundtrip_tools.template.parameters import PSEUDO_PARAMETERS, resolve_parameters
from mcp_roundtrip_tools.template.queues import read_queues
from mcp_roundtrip_tools.template.resource import TemplateResource
from mcp_roundtrip_tools.template.resources import TemplateResources
from mcp_roundtrip_tools.template.routes import RouteReader
from mcp_roundtrip_tools.template.validation import check_rules
from mcp_roundtrip_tools.template.yaml_reader import load

TABLE_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


@dataclass(frozen=True, slots=True)
class TemplateKey:
    """A KMS key of the template, with the names of its aliases."""

    logical_id: str
    spec: str
    usage: str
    aliases: tuple[str, ...]


class Template:
    """A template with its parameters.

    Raises TemplateError if it cannot be read, or if a parameter is not allowed.
    """

    def __init__(self, path: Path, parameters: Mapping[str, str]) -> None:
        self.path = path.resolve()
        document = load(self.path)
        self._nested = nested_templates(document, self.path.parent)
        document = with_nested_stacks(document, self.path.parent)
        declared = document.get("Parameters") or {}
        self._names = TemplateNames(
            values={**PSEUDO_PARAMETERS, **resolve_parameters(declared, parameters)},
            attributes={},
            mappings=document.get("Mappings") or {},
            conditions=document.get("Conditions") or {},
        )
        check_rules(document.get("Rules") or {}, self._names)
        self._resources = TemplateResources(document, self._names)

    def keys(self) -> tuple[TemplateKey, ...]:
        """Return the KMS keys. `application` needs their ARNs."""
        names = local_names(self._names, self._resources, {}, "", "")
        left_out, aliases = LeftOut(), dict[str, list[str]]()
        for alias in self._resources.of_type(types.ALIAS, names):
            with left_out.noting():
                aliases.setdefault(alias.text("TargetKeyId"), []).append(alias.text("AliasName"))
        found = []
        for key in self._resources.of_type(types.KEY, names):
            with left_out.noting():
                spec = key.text("KeySpec", "SYMMETRIC_DEFAULT")
                usage = key.text("KeyUsage", "ENCRYPT_DECRYPT")
                found.append(TemplateKey(key.name, spec, usage, tuple(aliases.get(key.name, ()))))
        return tuple(found)

    def application(
        self,
        key_arns: KeyArns,
        api_url: str,
        sqs_url: str = "",
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> Application:
        """Return the resolved application. `key_arns` has the ARNs of the created keys by logical id.

        `variables` are the variables of every function, which replace those of the template. Parts that
        cannot run here are left out. Raises TemplateError for a setting that the layer refuses.
        """
        folder, left_out = self.path.parent, self._resources.left_out()
        names = local_names(self._names, self._resources, key_arns, api_url, sqs_url)
        reader = FunctionReader(
            self._layers(names, left_out), folder, api_url, variables, self._names.values, left_out
        )
        resources = list(self._resources.of_type(types.FUNCTION, names))
        read = self._functions(resources, reader, left_out)
        configs = read_invoke_configs(
            resources, self._resources.of_type(types.INVOKE_CONFIG, names), left_out
        )
        functions = {
            each.name: replace(each, event_invoke=configs.get(each.name, each.event_invoke)) for each in read
        }
        of_names = {each.name: name_of_function(each) for each in resources}
        routes = RouteReader(self._resources, names, folder, of_names, left_out).read(resources)
        queues, mappings = (
            self._resources.of_type(kind, names) for kind in (types.QUEUE, types.EVENT_SOURCE)
        )
        code = dict.fromkeys([each.code for each in read] + [path for each in read for path in each.layers])
        return Application(
            functions,
            read_queues(queues, mappings, resources, left_out),
            routes,
            (self.path, *self._nested, *code),
            self._storage(names, left_out),
            self._cors(names, left_out),
            left_out.targets,
            tuple(left_out.notes),
        )

    def _functions(
        self, resources: Iterable[TemplateResource], reader: FunctionReader, left_out: LeftOut
    ) -> list[Function]:
        """Return the functions that can run here."""
        found = []
        for resource in resources:
            if resource.name in self._resources.problems:
                left_out.targets[name_of_function(resource)] = self._resources.problems[resource.name]
            elif (function := reader.read(resource)) is not None:
                found.append(function)
        reader.note_layers()
        return found

    def _layers(self, names: TemplateNames, left_out: LeftOut) -> dict[str, Path]:
        found = {}
        for layer in self._resources.of_type(types.LAYER, names):
            with left_out.noting():
                found[layer_arn(layer.name)] = _layer_folder(layer.folder("ContentUri", self.path.parent))
        return found

    def _cors(self, names: TemplateNames, left_out: LeftOut) -> Any:
        """Return the CORS configuration of the first API that has one, otherwise that of Globals."""
        apis = [api for kind in types.HTTP_APIS for api in self._resources.of_type(kind, names)]
        shared = TemplateResource("Globals.HttpApi", self._resources.globals_of("HttpApi"), names)
        for api in (*apis, shared):
            with left_out.noting():
                if (cors := api.get("CorsConfiguration")) is not None:
                    return cors
        return None

    def _storage(self, names: TemplateNames, left_out: LeftOut) -> Storage:
        tables, buckets = {}, []
        for table in self._resources.of_type(types.TABLE, names):
            with left_out.noting():
                properties = {name: table.get(name) for name in TABLE_PROPERTIES if name in table.properties}
                tables[table.text("TableName", table.name)] = properties
        for bucket in self._resources.of_type(types.BUCKET, names):
            with left_out.noting():
                buckets.append(bucket_name(bucket))
        return Storage(tables, tuple(buckets))


def _layer_folder(content: Path) -> Path:
    # A built layer has its packages in python/, the source of a layer that `sam build` builds at the top.
    built = content / "python"
    return built if built.is_dir() else content
