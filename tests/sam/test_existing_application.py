"""docs/guides/existing-application.md, executed: its files and commands in an empty folder, then a client."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
import yaml
from mcp.client import Client

from mcp_roundtrip_local.template.yaml_reader import load
from support import cloudformation
from support.documents import code_blocks
from support.project import ROOT, copy_project
from support.sam_build import NATIVE_ARCHITECTURE, NATIVE_RUNTIME, SAM, environment, run
from support.transformed_template import lint, transformed_file

PAGE = "docs/guides/existing-application.md"
APP, TEST = code_blocks(PAGE, "python")
TEMPLATE, LAYER_OF_ANOTHER_STACK = code_blocks(PAGE, "yaml")
BUILD, INSTALL, RUN_TESTS, SERVE = code_blocks(PAGE, "sh")

PACKAGES = [
    ROOT / "layers/mcp_roundtrip/mcp_roundtrip",
    *sorted((ROOT / "development").glob("mcp_roundtrip_*")),
]

ISSUER = "https://id.example"

pytestmark = pytest.mark.slow


def for_this_computer(template: str) -> str:
    """Return the template with the runtime and architecture of this computer."""
    return template.replace("python3.13", NATIVE_RUNTIME).replace("arm64", NATIVE_ARCHITECTURE)


def shell(commands: str, folder: Path) -> subprocess.CompletedProcess[str]:
    variables = environment()
    variables["PATH"] = os.pathsep.join([variables["PATH"], str(SAM.parent)])
    variables["PIP_NO_COMPILE"] = "1"  # a few of the installed modules are imported: those are compiled then
    return subprocess.run(
        ["sh", "-e", "-c", commands], cwd=folder, env=variables, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the files of the page beside a checkout of this repository."""
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "mcp-roundtrip").mkdir()
    copy_project(folder / "mcp-roundtrip")
    sources = {
        "orders/app.py": APP,
        "tests/test_orders.py": TEST,
        "template.yaml": for_this_computer(TEMPLATE),
    }
    for name, text in sources.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


@pytest.fixture(scope="module")
def built(application: Path) -> Path:
    done = shell(BUILD, application)
    assert done.returncode == 0, done.stdout + done.stderr
    return application / ".aws-sam/build"


@pytest.fixture(scope="module")
def installed(application: Path) -> Path:
    """Return the application with a virtual environment in which the package is installed."""
    done = shell(INSTALL, application)
    assert done.returncode == 0, done.stdout + done.stderr
    return application


@pytest.fixture(scope="module")
def wheel(installed: Path) -> Path:
    [path] = (installed / "wheels").iterdir()
    return path


# -- the template ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transformed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of the transformed template of the page."""
    source = tmp_path_factory.mktemp("page") / "template.yaml"
    source.write_text(TEMPLATE)
    output = source.with_name("transformed.yaml")
    output.write_text(transformed_file(source, TokenIssuer=ISSUER))
    return output


def test_the_transform_of_the_template_on_the_page_is_lint_clean(transformed: Path) -> None:
    """The first command of the page, which `built` runs, lints the source."""
    assert lint(transformed) == []
    assert BUILD.startswith("sam validate --lint\n")


def test_the_api_may_only_invoke_the_function_and_the_function_may_only_use_its_keys(
    transformed: Path,
) -> None:
    template = yaml.safe_load(transformed.read_text())
    stack = cloudformation.resources(template, cloudformation.parameters_of(template, TokenIssuer=ISSUER))
    [role] = [each["Properties"] for each in stack.values() if each["Type"] == "AWS::IAM::Role"]
    statements = [s for policy in role["Policies"] for s in policy["PolicyDocument"]["Statement"]]
    assert [(statement["Action"], statement["Resource"]) for statement in statements] == [
        (["kms:Sign", "kms:GetPublicKey"], "${StateKey.Arn}"),
        ("kms:GenerateMac", "${StateEncryptionKey.Arn}"),
    ]
    [managed] = role["ManagedPolicyArns"]
    assert managed.endswith("/service-role/AWSLambdaBasicExecutionRole")
    [permission] = [each for each in stack.values() if each["Type"] == "AWS::Lambda::Permission"]
    assert permission["Properties"]["SourceArn"].endswith(":${ServerlessHttpApi}/*/*")
    assert permission["Properties"]["Principal"] == "apigateway.amazonaws.com"


def test_the_function_has_three_settings_and_the_events_tell_the_address_of_its_outputs(
    transformed: Path,
) -> None:
    template = yaml.safe_load(transformed.read_text())
    stack = cloudformation.resources(template, cloudformation.parameters_of(template, TokenIssuer=ISSUER))
    variables = stack["OrdersFunction"]["Properties"]["Environment"]["Variables"]
    assert variables.keys() == {"MCP_TOKEN_ISSUER", "MCP_STATE_KEY_ARN", "MCP_STATE_ENCRYPTION_KEY_ARN"}
    # The one route is the default one of the default stage: the audience is the origin, as the output.
    [(route, methods)] = stack["ServerlessHttpApi"]["Properties"]["Body"]["paths"].items()
    integration = methods["x-amazon-apigateway-any-method"]["x-amazon-apigateway-integration"]
    assert (route, integration["payloadFormatVersion"]) == ("$default", "2.0")
    [stage] = [each for each in stack.values() if each["Type"] == "AWS::ApiGatewayV2::Stage"]
    assert stage["Properties"]["StageName"] == "$default"
    url = "https://${ServerlessHttpApi}.execute-api.${AWS::Region}.${AWS::URLSuffix}"
    assert template["Outputs"]["McpUrl"]["Value"] == {"Fn::Sub": url}


def test_the_template_with_the_layer_of_another_stack_is_lint_clean(tmp_path: Path) -> None:
    source, output = tmp_path / "template.yaml", tmp_path / "transformed.yaml"
    resource = re.compile(r"^  RoundtripLayer:\n(?:    .*\n)+\n", re.MULTILINE)
    without, count = resource.subn("", TEMPLATE)
    assert count == 1
    source.write_text(without.replace("Parameters:\n", LAYER_OF_ANOTHER_STACK))
    assert run(SAM, "validate", "--lint", cwd=tmp_path).returncode == 0
    layer = "arn:aws:lambda:eu-west-1:123456789012:layer:RoundtripLayer0a1b:7"
    output.write_text(transformed_file(source, TokenIssuer=ISSUER, RoundtripLayer=layer))
    assert lint(output) == []
    template = yaml.safe_load(output.read_text())
    parameters = cloudformation.parameters_of(template, TokenIssuer=ISSUER, RoundtripLayer=layer)
    function = cloudformation.resources(template, parameters)["OrdersFunction"]["Properties"]
    assert function["Layers"] == [layer]
    with pytest.raises(cloudformation.Refused):
        cloudformation.parameters_of(template, TokenIssuer=ISSUER, RoundtripLayer="RoundtripLayer")


# -- the build ------------------------------------------------------------------------------------------


def test_the_layer_is_built_from_the_checkout(built: Path) -> None:
    shipped = {path.name for path in (built / "RoundtripLayer/python").iterdir()}
    expected = {"mcp_roundtrip", "msgspec", "pydantic", "jwt", "cryptography", "aws_lambda_powertools"}
    assert expected <= shipped
    assert (built / "OrdersFunction/app.py").read_text() == APP
    resources = load(built / "template.yaml")["Resources"]
    assert resources["RoundtripLayer"]["Properties"]["ContentUri"] == "RoundtripLayer"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_build_is_served_and_asks_its_question(
    built: Path, installed: Path, anyio_backend: str
) -> None:
    asked: list[str] = []

    async def choose(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"value": "A-1002"})

    command = [*shlex.split(SERVE.replace("\\\n", "")), "--port", "0"]
    with subprocess.Popen(
        command, cwd=installed, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+/", line)))
            async with Client(url + "mcp", elicitation_callback=choose) as client:
                result = await client.call_tool("order_status", {})
        finally:
            process.terminate()
    assert result.content == [types.TextContent(type="text", text="A-1002 is being packed.")]
    assert asked == ["Which order?"]


# -- the wheel ------------------------------------------------------------------------------------------


def test_the_tests_on_the_page_pass_with_the_installed_package(installed: Path) -> None:
    done = shell(RUN_TESTS, installed)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout
    where = "import mcp_roundtrip; print(mcp_roundtrip.__file__)"
    python = installed / ".venv/bin/python"
    assert str(installed / ".venv") in run(python, "-c", where, cwd=installed).stdout


def test_the_wheel_contains_only_the_package(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        [top_level] = [name for name in archive.namelist() if name.endswith("top_level.txt")]
        assert archive.read(top_level).split() == [package.name.encode() for package in PACKAGES]
    expected = {
        path.relative_to(package.parent).as_posix()
        for package in PACKAGES
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == expected
    assert {"mcp_roundtrip/py.typed", "mcp_roundtrip_testing/py.typed"} <= names


def test_the_metadata_of_the_wheel_are_those_of_the_project(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [path] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata: Message = message_from_string(archive.read(path).decode())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert metadata["Name"] == project["name"]
    assert metadata["Version"] == project["version"]
    assert metadata["Summary"] == project["description"]
    assert metadata["License-Expression"] == project["license"]
    assert metadata["Requires-Python"] == project["requires-python"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    required = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
    assert sorted(map(_sorted_specifiers, required)) == sorted(
        map(_sorted_specifiers, project["dependencies"])
    )
    assert set(metadata.get_all("Provides-Extra", [])) == set(project["optional-dependencies"])
    assert wheel.name.endswith("-py3-none-any.whl")


def _sorted_specifiers(requirement: str) -> tuple[str, list[str]]:
    name, specifiers = re.fullmatch(r"([\w.-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
    return name, sorted(specifiers.split(","))
