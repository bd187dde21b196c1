"""Nested stacks: templates with their own parameters and resources, whose outputs the parent uses.

The application is one of `mcp-roundtrip new` with a tool with tasks: its platform, its endpoint and the queue
of its worker are nested stacks.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from shutil import copytree

import pytest

from mcp_roundtrip_tools.growth.new_tool_and_function import plan_tool
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.new.command import render
from mcp_roundtrip_tools.template.model import (
    ACCOUNT,
    REGION,
    Application,
    Queue,
    Route,
    TemplateError,
    describe_left_out,
)
from mcp_roundtrip_tools.template.reader import Template
from support.project import edit
from support.sam_applications import write_application
from support.served_application import serve

API, SQS = "http://127.0.0.1:3000", "http://127.0.0.1:3001"
ROOT, PLATFORM = "template.yaml", "platform/template.yaml"

VARIABLE = "POWERTOOLS_LOG_LEVEL: INFO"
"""A variable of all functions."""

PASSED = "        TokenIssuer: !Ref TokenIssuer\n"
"""The last parameter that the application passes to the platform."""

NAMES = ("StateKey", "Platform.StateKey", "Platform.StateEncryptionKey")
KEYS = {name: f"arn:aws:kms:{REGION}:{ACCOUNT}:key/{name.replace('.', '-')}-local" for name in NAMES}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("orders")
    write({folder / path: text for path, text in render("orders", "python3.13", "arm64").items()})
    write(plan_tool(folder, "count_parts", tasks=True))
    return folder


@pytest.fixture
def project(written, tmp_path):
    copytree(written, tmp_path, dirs_exist_ok=True)
    return tmp_path


def read(project: Path, parameters: Mapping[str, str] | None = None) -> Application:
    given = {"AuthMode": "none", **(parameters or {})}
    return Template(project / ROOT, given).application(api_url=API, sqs_url=SQS)


def settings(application: Application) -> dict[str, str]:
    lines = application.functions["local_server"].environment["MCP_SETTINGS"].splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_the_resources_and_outputs_of_all_stacks_are_one_application(project):
    found = read(project)
    assert describe_left_out(found) == []
    assert (
        settings(found).items()
        >= {
            "MCP_AUTH_MODE": "none",
            "MCP_ISSUER": "local",
            "MCP_AUDIENCE": f"{API}/mcp",
            "MCP_STATE_KEY_ARN": KEYS["Platform.StateKey"],
            "MCP_TASK_TABLE": "Platform-TaskTable",
            "MCP_TASK_DELIVERY": "invoke",
        }.items()
    )
    assert found.functions.keys() == {"local_server", "local_server_worker"}
    queue = f"{SQS}/{ACCOUNT}/local_server_tasks"
    assert found.functions["local_server"].environment["MCP_TASK_QUEUE"] == queue
    undelivered = "Platform-UndeliveredTasks"
    worker = found.functions["local_server_worker"]
    assert worker.dead_letter == f"arn:aws:sqs:{REGION}:{ACCOUNT}:{undelivered}"
    assert found.queues == {
        "local_server_tasks": Queue("local_server_tasks", "local_server_worker", 930, 200, undelivered),
        undelivered: Queue(undelivered),
    }
    assert Route("POST", "/mcp", "local_server") in found.routes
    assert found.storage.tables.keys() == {"Platform-TaskTable"}
    templates = [ROOT, PLATFORM, "platform/endpoint.yaml", "platform/task_queue.yaml"]
    assert {*found.templates} == {project / name for name in templates}
    assert {*found.sources} == {*found.templates, project / "functions/server", project / "layer"}


def test_equal_logical_ids_of_two_templates_are_different_resources(project):
    key = "{Type: AWS::KMS::Key, Properties: {KeySpec: ECC_NIST_P256, KeyUsage: SIGN_VERIFY}}"
    edit(project / ROOT, "\nOutputs:\n", f"  StateKey: {key}\n\nOutputs:\n")
    edit(project / ROOT, VARIABLE, "OWN: !GetAtt StateKey.Arn")
    found = read(project)
    assert {each.name: each.aliases for each in found.keys} == {
        "StateKey": (),
        "Platform.StateKey": ("alias/local-state",),
        "Platform.StateEncryptionKey": ("alias/local-state-encryption",),
    }
    assert settings(found)["MCP_STATE_KEY_ARN"] == KEYS["Platform.StateKey"]
    assert found.functions["local_server"].environment["OWN"] == KEYS["StateKey"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("!GetAtt Platform.Outputs.TaskTable", "Platform-TaskTable"),
        ("!Sub 'x-${Platform.Outputs.TaskTable}'", "x-Platform-TaskTable"),
        ("!GetAtt [Platform, Outputs.TaskTable]", "Platform-TaskTable"),
        ("!Ref Platform", f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/local-Platform-LOCAL/0"),
    ],
)
def test_an_output_is_read_in_each_notation(project, expression, value):
    edit(project / ROOT, VARIABLE, f"OUTPUT: {expression}")
    assert read(project).functions["local_server"].environment["OUTPUT"] == value


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("!GetAtt Platform.Outputs.TaskTabel", r" TaskTable\?"),
        ("!Sub '${Platform.Outputs.Zzzzzz}'", " Zzzzzz; it has "),
        ("!GetAtt Platform.Outputs.Queued", "Platform.Outputs.Queued .*conditions"),
        ("!GetAtt Platform.Outputs.Deployed", "Platform.Outputs.Deployed.Value: the attribute Logs.Colour"),
    ],
)
def test_a_function_without_an_output_that_it_needs_is_left_out(project, expression, problem):
    more = "  Queued: {Condition: UsesJwt, Value: x}\n  Deployed: {Value: !GetAtt Logs.Colour}\n"
    edit(project / PLATFORM, "\nOutputs:\n", f"\nOutputs:\n{more}")
    edit(project / ROOT, VARIABLE, f"OUTPUT: {expression}")
    assert re.search(problem, read(project).left_out["local_server"])


def test_a_function_of_a_nested_stack_has_the_globals_and_the_folder_of_its_template(project):
    nested = """
        Parameters: {Layer: {Type: String}}
        Globals: {Function: {Timeout: 7}}
        Resources:
          ServerFunction:
            Type: AWS::Serverless::Function
            Properties: {Handler: a.b, Runtime: python3.13, CodeUri: code, Layers: [!Ref Layer],
              Events: {E: {Type: HttpApi, Properties: {Path: /more, Method: GET}}}}
        """
    passed = "{Location: more/template.yaml, Parameters: {Layer: !Ref RoundtripLayer}}"
    more = f"  More: {{Type: AWS::Serverless::Application, Properties: {passed}}}\n"
    edit(project / ROOT, "\nOutputs:\n", f"{more}\nOutputs:\n")
    write_application(project / "more", nested, {"code/a.py": ""})
    found = read(project)
    function = found.functions["More-ServerFunction"]
    assert (function.timeout_s, function.code) == (7, project / "more/code")
    assert function.layers == (project / "layer",)
    assert "MCP_SETTINGS" not in function.environment
    assert Route("GET", "/more", "More-ServerFunction") in found.routes


def test_a_parameter_of_a_nested_stack_replaces_its_default_and_what_the_parent_passes(project):
    origins = "https://a.example,https://b.example"
    given = {"Platform.AuthMode": "iam", "Platform.TaskDelivery": "queue", "Platform.AllowedOrigins": origins}
    changed = settings(read(project, given))
    assert (changed["MCP_AUTH_MODE"], changed["MCP_TASK_DELIVERY"]) == ("iam", "queue")
    assert changed["MCP_ALLOWED_ORIGINS"] == origins


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"TaskDelivery": "queue"}, r" Platform.TaskDelivery\?"),
        ({"TaskDelivry": "queue"}, r" Platform.TaskDelivery\?"),
        ({"Platform.TaskDelivry": "queue"}, r" Platform.TaskDelivery\?"),
        ({"Platfrm.TaskDelivery": "queue"}, r" Platform.TaskDelivery\?"),
        ({"AuthMod": "none"}, r" AuthMode\?"),
        ({"Zzz": "1"}, "Zzz; .*AuthMode, TokenIssuer"),
        ({"Platform.TaskDelivery": "never"}, "invoke, queue,.* 'never'"),
        ({"Platform.EndpointUri": "http://a"}, "Platform.EndpointUri must be "),
    ],
)
def test_a_parameter_that_no_template_has_or_that_is_not_allowed_is_refused(project, given, sentence):
    with pytest.raises(TemplateError) as refused:
        read(project, given)
    assert re.search(sentence, str(refused.value))
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("passed", "sentence"),
    [
        ("EndpointUri: http://a", "Platform.EndpointUri must be "),
        ("EndpointUrl: https://a", "Platform.Parameters.EndpointUrl: platform/template.yaml "),
        ("EndpointUri: !Split [a, b]", "Platform.Parameters.EndpointUri: must be "),
        ("TaskDelivery: 1", "Platform.TaskDelivery must be "),
    ],
)
def test_a_value_that_the_parent_may_not_pass_is_refused(project, passed, sentence):
    edit(project / ROOT, PASSED, f"{PASSED}        {passed}\n")
    with pytest.raises(TemplateError) as refused:
        read(project)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("        Api: !GetAtt Platform.Outputs.Api\n", "", "platform/endpoint.yaml .* Api"),
        ("platform/endpoint.yaml", "platform/nowhere.yaml", ".*/platform/nowhere.yaml"),
        ("platform/endpoint.yaml", "./template.yaml", "./template.yaml .*itself"),
    ],
)
def test_a_nested_stack_without_a_value_that_is_missing_or_contains_itself_is_refused(
    project, old, new, sentence
):
    edit(project / ROOT, old, new)
    with pytest.raises(TemplateError, match=rf"Endpoint\.(Parameters|Location): {sentence}"):
        read(project)


def test_a_change_of_a_nested_template_is_noticed(project):
    log: list[str] = []
    with serve(project / ROOT, parameters={"AuthMode": "none"}, watch_interval_s=0, log=log.append) as app:
        edit(project / PLATFORM, "Default: invoke", "Default: never")
        assert settings(app.current())["MCP_TASK_DELIVERY"] == "invoke"
        edit(project / PLATFORM, "Default: never", "Default: queue")
        assert settings(app.current())["MCP_TASK_DELIVERY"] == "queue"
    assert any("Platform.TaskDelivery must be " in line for line in log)
