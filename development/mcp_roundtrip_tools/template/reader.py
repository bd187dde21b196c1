"""Read a SAM template (SAM developer guide, "AWS SAM resources and properties" and "Globals section")."""

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mcp_roundtrip_tools.template.event_sources import DEFAULT, RouteReader, note_other_events, read_queues
from mcp_roundtrip_tools.template.functions import FunctionReader, check_settings
from mcp_roundtrip_tools.template.intrinsics import Unresolvable
from mcp_roundtrip_tools.template.local_names import (
    LOCAL_URL,
    LocalServices,
    key_id,
    layer_arn,
    name_of,
    name_of_function,
)
from mcp_roundtrip_tools.template.model import (
    Application,
    Function,
    LeftOut,
    Route,
    Storage,
    TemplateError,
    TemplateKey,
)
from mcp_roundtrip_tools.template.resources import FUNCTION, HTTP_APIS, TABLES, TemplateResource
from mcp_roundtrip_tools.template.stacks import Stack
from mcp_roundtrip_tools.template.template_files import check_given, check_platform, read_tree

TABLE_PROPERTIES = ("AttributeDefinitions", "KeySchema", "GlobalSecondaryIndexes", "LocalSecondaryIndexes")


@dataclass(frozen=True, slots=True)
class Template:
    """A SAM template and its nested stacks, with the values of parameters: `NAME`, and `Platform.NAME`."""

    path: Path
    parameters: Mapping[str, str]

    def application(
        self,
        variables: Mapping[str, str] = MappingProxyType({}),
        api_url: str = LOCAL_URL,
        sqs_url: str = LOCAL_URL,
        key_set: str = "local",
        *,
        checks_values: bool = True,
    ) -> Application:
        """Read what can run here; parts that cannot are left out.

        `variables` are the variables of every function, which replace those of the template. `key_set` is in
        the ids of the keys. Without `checks_values`, values may be placeholders. Raises TemplateError if a
        template cannot be read, if a parameter is not allowed, and for a setting that the layer refuses.
        """
        tree = read_tree(self.path)
        check_platform(tree)
        check_given(self.parameters, tree)
        services = LocalServices(api_url, sqs_url, key_set)
        stacks = Stack(tree, self.parameters, services)
        for problem in stacks.problems(checks_values=checks_values):
            raise TemplateError(problem.removesuffix("."))
        application = _application(stacks, services, variables)
        for function in application.functions.values() if checks_values else ():
            check_settings(function)
        return application


def _application(stacks: Stack, services: LocalServices, variables: Mapping[str, str]) -> Application:
    left_out = stacks.left_out()
    reader = FunctionReader(_layers(stacks, left_out), services.api_url, variables, left_out)
    resources = [*stacks.of_type(FUNCTION)]
    read = _functions(stacks, resources, reader, left_out)
    of_names = {each.name: name_of_function(each) for each in resources}
    routes = RouteReader(stacks, of_names, left_out).read(resources)
    note_other_events(resources, left_out)
    queues = stacks.of_type("AWS::SQS::Queue")
    mappings = stacks.of_type("AWS::Lambda::EventSourceMapping")
    templates = tuple(dict.fromkeys(stacks.tree.files()))
    code = dict.fromkeys([each.code for each in read] + [path for each in read for path in each.layers])
    return Application(
        {each.name: each for each in read},
        read_queues(queues, mappings, resources, left_out),
        routes,
        (*templates, *code),
        _keys(stacks, services, left_out),
        _storage(stacks, left_out),
        _cors(stacks, resources, routes, left_out),
        left_out.targets,
        tuple(left_out.notes),
        templates,
    )


def _keys(stacks: Stack, services: LocalServices, left_out: LeftOut) -> tuple[TemplateKey, ...]:
    aliases = dict[str, list[str]]()
    for alias in stacks.of_type("AWS::KMS::Alias"):
        with left_out.noting():
            aliases.setdefault(alias.text("TargetKeyId"), []).append(alias.text("AliasName"))
    found = []
    for key in stacks.of_type("AWS::KMS::Key"):
        with left_out.noting(), suppress(Unresolvable):  # the functions that use it are left out
            own = key_id(key, services)
            found.append(TemplateKey(key.name, own, key.text("KeySpec"), tuple(aliases.get(own, ()))))
    return tuple(found)


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
    for layer in stacks.of_type("AWS::Serverless::LayerVersion"):
        with left_out.noting():
            found[layer_arn(layer)] = _layer_folder(layer.folder_of("ContentUri"))
    return found


def _layer_folder(content: Path) -> Path:
    # A built layer has its packages in python/, the source of a layer that `sam build` builds at the top.
    built = content / "python"
    return built if built.is_dir() else content


def _cors(
    stacks: Stack, functions: Iterable[TemplateResource], routes: Collection[Route], left_out: LeftOut
) -> Any:
    """Return the CORS configuration of the first API that has one, otherwise of Globals or a function URL."""
    for api in (*stacks.of_type(*HTTP_APIS), *stacks.globals_of("HttpApi")):
        with left_out.noting():
            if (cors := api.get("CorsConfiguration")) is not None:
                return cors
    for function in functions:
        is_served = Route("ANY", DEFAULT, name_of_function(function)) in routes
        with left_out.noting():
            if is_served and (cors := function.get("FunctionUrlConfig", {}).get("Cors")) is not None:
                return cors
    return None


def _storage(stacks: Stack, left_out: LeftOut) -> Storage:
    tables, buckets = {}, []
    for table in stacks.of_type(*TABLES):
        with left_out.noting():
            tables[name_of(table)] = _table_properties(table)
    for bucket in stacks.of_type("AWS::S3::Bucket"):
        with left_out.noting():
            buckets.append(name_of(bucket))
    return Storage(tables, tuple(buckets))


def _table_properties(table: TemplateResource) -> dict[str, Any]:
    if table.kind != "AWS::Serverless::SimpleTable":
        return {name: table.get(name) for name in TABLE_PROPERTIES if name in table.properties}
    key = table.get("PrimaryKey", {})
    name, kind = key.get("Name", "id"), key.get("Type", "String")
    return {
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": kind[0]}],
        "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
    }
