"""Add a part that not every application needs: `pipeline` or `edge`.

`pipeline` is a GitHub workflow that tests, builds and deploys, with the roles of its deployer. `edge` is
CloudFront with a web ACL in front of the endpoint. After an upgrade, --force replaces the files.
"""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.catalog import edge_routes
from mcp_roundtrip_tools.catalog.catalog import FRONT_DOOR, FUNCTIONS, catalog_of, load_function_servers
from mcp_roundtrip_tools.deploy.checks import stack_of
from mcp_roundtrip_tools.deploy.environments import (
    DEFAULT,
    SHARED,
    Answers,
    Environment,
    Refused,
    read_environment,
)
from mcp_roundtrip_tools.deployer_policy.permissions import PERMISSIONS
from mcp_roundtrip_tools.growth.entries import TEMPLATE, tool_functions
from mcp_roundtrip_tools.growth.written_files import Files, GrowthError, run
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.resources import FUNCTION
from mcp_roundtrip_tools.template.template_files import (
    TemplateTree,
    check_platform,
    platform_version,
    read_tree,
)

FILES = Path(__file__).with_name("parts")
"""A folder for each part, with its files at the paths that they get in an application."""

ENVIRONMENTS = (DEFAULT, "prod")
"""The environments of the workflow."""

PIPELINE = "platform/pipeline/template.yaml"

TRANSFORMED = frozenset(f"AWS::Serverless::{name}" for name in ("Application", "Function", "LayerVersion"))
"""Types of template.yaml for whose resources PIPELINE has permissions."""

_PYTHON_VERSION = re.compile(r'(?<=python-version: ")[0-9.]+(?=")')


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Raises GrowthError and OSError."""
    parser = argparse.ArgumentParser(
        prog="mcp-roundtrip add", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", help=" or ".join(PARTS))
    parser.add_argument("--force", action="store_true", help="replace files that exist, too")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder of template.yaml")
    given = parser.parse_args(arguments)
    return run(
        lambda: plan_part(given.project, given.part, force=given.force),
        lambda _: "\n".join(next_steps(given.project, given.part)),
    )


def plan_part(project: Path, part: str, *, force: bool = False) -> Files:
    """Return the files of a part that the project has not. Raises GrowthError and TemplateError."""
    if part not in PARTS:
        raise GrowthError(f"a part is {' or '.join(PARTS)}, not {part!r}: make add PART=pipeline")
    tree = read_tree(project / TEMPLATE)
    check_platform(tree)
    if not any(platform_version(each.document) for each in tree.nested.values()):
        raise GrowthError(
            f"{TEMPLATE} has no platform/, which {part} needs: docs/guides/existing-application.md adds it"
        )
    files = {project / path: text for path, text in PARTS[part](project, tree).items()}
    changed = {
        path: text for path, text in files.items() if not path.exists() or path.read_bytes() != text.encode()
    }
    existing = ", ".join(str(path) for path in changed if path.exists())
    if existing and not force:
        raise GrowthError(
            f"{existing} exists already and differs: rename it, or replace it by make add PART={part} FORCE=1"
        )
    return changed


def _pipeline_files(project: Path, tree: TemplateTree) -> Files:
    environments = {name: _environment(project, name) for name in ENVIRONMENTS}
    python = _python_version(project, tree, environments[DEFAULT])
    return {path: _PYTHON_VERSION.sub(python, text) for path, text in _files_of("pipeline").items()}


def _edge_files(project: Path, tree: TemplateTree) -> Files:
    """Return the files of platform/edge/. With one function no call needs a route, and the table is empty."""
    [template] = _files_of("edge").values()
    has_front_door = (project / FUNCTIONS / FRONT_DOOR).is_dir()
    try:
        catalog = catalog_of(load_function_servers(project / FUNCTIONS)) if has_front_door else {}
    except McpRoundtripError as error:
        raise GrowthError(str(error)) from None
    return edge_routes.edge_files(template, catalog)


PARTS: Mapping[str, Callable[[Path, TemplateTree], Files]] = {
    "pipeline": _pipeline_files,
    "edge": _edge_files,
}


def _files_of(part: str) -> Files:
    """Return the files of a part by their paths in an application."""
    folder = FILES / part
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder): path.read_text("utf-8") for path in paths}


def _environment(project: Path, name: str) -> Environment:
    """Return an environment without samconfig.local.toml, which is not in Git. Raises GrowthError."""
    try:
        environment = replace(read_environment(project, name), local=Answers())
    except Refused as error:
        raise GrowthError(str(error)) from None
    stack = environment.option("stack_name")
    if stack is None:
        raise GrowthError(
            f"{SHARED} has no stack_name in [{name}.global.parameters]: the workflow deploys to {name}"
        )
    return environment


def _python_version(project: Path, tree: TemplateTree, environment: Environment) -> str:
    """Return the Python of the runtime of the functions, which compiles the layer. Raises GrowthError."""
    stack = stack_of(tree, environment.parameters, environment.option("stack_name"))
    for function in tool_functions(project, tree.document).values():
        resource = stack.resources.get(function.logical_id)  # none under its condition
        runtime = "" if resource is None else resource.text("Runtime", "")
        if runtime.startswith("python"):
            return runtime.removeprefix("python")
    raise GrowthError(
        f"{TEMPLATE} has no function with tools and a Runtime such as python3.13 in {environment.name}"
    )


def next_steps(project: Path, part: str) -> Iterator[str]:
    """Yield what the user does with the files of a part."""
    if part == "edge":
        yield "docs/guides/edge-routing.md says how to deploy it."
        return
    yield f"docs/guides/pipeline.md says what to set up. Deploy {PIPELINE} for each environment:"
    for name in ENVIRONMENTS:
        stack = _environment(project, name).option("stack_name")
        yield f"  GitHubEnvironment={name} ApplicationStack={stack}"
    tree = read_tree(project / TEMPLATE)
    documents = [tree.document, *(each.document for each in tree.nested.values())]
    resources = [each for document in documents for each in document["Resources"].values()]
    types = {str(each["Type"]) for each in resources if isinstance(each, dict) and "Type" in each}
    if unknown := sorted(types - TRANSFORMED - PERMISSIONS.keys()):
        yield f"It has no permissions for {', '.join(unknown)}: add them to its ExecutionRole."
    if others := ", ".join(_functions_of_other_names(tree, _environment(project, DEFAULT))):
        yield f"It has no permissions for {others}: a FunctionName must begin with ${{AWS::StackName}}_."


def _functions_of_other_names(tree: TemplateTree, environment: Environment) -> Iterator[str]:
    """Yield the functions that the deployer may not create, by the convention of function names."""
    stack_name = environment.option("stack_name")
    for function in stack_of(tree, environment.parameters, stack_name).of_type(FUNCTION):
        with suppress(TemplateError):  # the name contains what only a deployment knows
            if not function.text("FunctionName", "").startswith(f"{stack_name}_"):
                yield function.name
