"""Read a SAM template: its functions, layers, routes, keys, queues, tables and buckets.

Sources: AWS SAM developer guide, "AWS SAM resources and properties" and "Globals section".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mcp_roundtrip_tools.template import resources as types
from mcp_roundtrip_tools.template.event_sources import RouteReader, read_queues
from mcp_roundtrip_tools.template.functions import FunctionReader, check_settings
from mcp_roundtrip_tools.template.local_names import (
    KeyArns,
    LocalServices,
    bucket_name,
    layer_arn,
    name_of_function,
    table_name,
)
from mcp_roundtrip_tools.template.model import Application, Function, LeftOut, Storage, TemplateError
from mcp_roundtrip_tools.template.resources import TemplateResource
from mcp_roundtrip_tools.template.stacks import Stack
from mcp_roundtrip_tools.template.template_tree import check_given, check_platform, read_tree

TABLE_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


@dataclass(frozen=True, slots=True)
class TemplateKey:
    """A KMS key, such as `StateKey` or `Platform.StateKey`, with the names of its aliases."""

    name: str
    spec: str
    usage: str
    aliases: tuple[str, ...]


class Template:
    """A template and its nested stacks with their parameters: `NAME`, and `Platform.NAME`.

    Without `checks_values`, values may be placeholders. Raises TemplateError if a template cannot be read, or
    if a parameter is not allowed.
    """

    def __init__(self, path: Path, parameters: Mapping[str, str], *, checks_values: bool = True) -> None:
        self.path = path.resolve()
        self._tree = read_tree(path)
        check_platform(self._tree)
        self._parameters = parameters
        self._checks_values = checks_values
        check_given(parameters, self._tree)
        self._stacks = self._read(LocalServices())

    def keys(self) -> tuple[TemplateKey, ...]:
        """Return the KMS keys. `application` needs their ARNs."""
        left_out, aliases = LeftOut(), dict[str, list[str]]()
        for alias in self._stacks.of_type(types.ALIAS):
            with left_out.noting():
                aliases.setdefault(alias.text("TargetKeyId"), []).append(alias.text("AliasName"))
        found = []
        for key in self._stacks.of_type(types.KEY):
            with left_out.noting():
                spec = key.text("KeySpec", "SYMMETRIC_DEFAULT")
                usage = key.text("KeyUsage", "ENCRYPT_DECRYPT")
                found.append(TemplateKey(key.name, spec, usage, tuple(aliases.get(key.physical_name, ()))))
        return tuple(found)

    def application(
        self,
        key_arns: KeyArns,
        api_url: str,
        sqs_url: str = "",
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> Application:
        """Return the resolved application. `key_arns` has the ARNs of the created keys by name.

        `variables` are the variables of every function, which replace those of the template. Parts that
        cannot run here are left out. Raises TemplateError for a setting that the layer refuses.
        """
        stacks = self._read(LocalServices(key_arns, api_url, sqs_url))
        left_out = stacks.left_out()
        reader = FunctionReader(_layers(stacks, left_out), api_url, variables, left_out)
        resources = [*stacks.of_type(types.FUNCTION)]
        read = _functions(stacks, resources, reader, left_out)
        for function in read if self._checks_values else ():
            check_settings(function)
        functions = {each.name: each for each in read}
        of_names = {each.name: name_of_function(each) for each in resources}
        routes = RouteReader(stacks, of_names, left_out).read(resources)
        queues, mappings = (stacks.of_type(kind) for kind in (types.QUEUE, types.EVENT_SOURCE))
        templates = tuple(dict.fromkeys(self._tree.files()))
        code = dict.fromkeys([each.code for each in read] + [path for each in read for path in each.layers])
        return Application(
            functions,
            read_queues(queues, mappings, resources, left_out),
            routes,
            (*templates, *code),
            _storage(stacks, left_out),
            _cors(stacks, left_out),
            left_out.targets,
            tuple(left_out.notes),
            templates,
        )

    def _read(self, services: LocalServices) -> Stack:
        root = Stack(self._tree, self._parameters, services)
        for problem in root.problems(checks_values=self._checks_values):
            raise TemplateError(problem.removesuffix("."))
        return root


def _functions(
    stacks: Stack, resources: Iterable[TemplateResource], reader: FunctionReader, left_out: LeftOut
) -> list[Function]:
    """Return the functions that can run here."""
    found = []
    for resource in resources:
        if problem := stacks.problem_of(resource.name):
            left_out.targets[name_of_function(resource)] = problem
        elif (function := reader.read(resource)) is not None:
            found.append(function)
    return found


def _layers(stacks: Stack, left_out: LeftOut) -> dict[str, Path]:
    found = {}
    for layer in stacks.of_type(types.LAYER):
        with left_out.noting():
            found[layer_arn(layer)] = _layer_folder(layer.folder_of("ContentUri"))
    return found


def _layer_folder(content: Path) -> Path:
    # A built layer has its packages in python/, the source of a layer that `sam build` builds at the top.
    built = content / "python"
    return built if built.is_dir() else content


def _cors(stacks: Stack, left_out: LeftOut) -> Any:
    """Return the CORS configuration of the first API that has one, otherwise that of Globals."""
    apis = [api for kind in types.HTTP_APIS for api in stacks.of_type(kind)]
    for api in (*apis, *stacks.globals_of("HttpApi")):
        with left_out.noting():
            if (cors := api.get("CorsConfiguration")) is not None:
                return cors
    return None


def _storage(stacks: Stack, left_out: LeftOut) -> Storage:
    tables, buckets = {}, []
    for table in stacks.of_type(types.TABLE):
        with left_out.noting():
            properties = {name: table.get(name) for name in TABLE_PROPERTIES if name in table.properties}
            tables[table_name(table)] = properties
    for bucket in stacks.of_type(types.BUCKET):
        with left_out.noting():
            buckets.append(bucket_name(bucket))
    return Storage(tables, tuple(buckets))
