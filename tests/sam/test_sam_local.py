"""`sam local start-api` and `sam local invoke`, up to the start of a container."""

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mcp_roundtrip import wiring
from mcp_roundtrip.auth.callers import AuthMode
from mcp_roundtrip.settings import load_settings
from mcp_roundtrip.variables import PREFIX
from mcp_roundtrip_testing import load_module
from mcp_roundtrip_tools.events.live import DEVELOPMENT_ENVIRONMENT, env_vars, live_events
from mcp_roundtrip_tools.events.stable import stable_events
from support.project import ROOT
from support.sam_build import SAM, run
from support.sample_events import (
    LIVE,
    STABLE,
    Invoke,
    environment,
    function_of,
    handler_of,
    unexpected_outcomes,
)
from support.setting_examples import UNRESOLVED
from support.transformed_template import AUTH_MODES, FOLDERS, of_type

SCRIPT = Path(__file__).with_name("sam_local.py")
ANY_METHOD = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return what sam reads, by AuthMode, with the variables that `make events` writes."""
    file = tmp_path_factory.mktemp("live") / "env.json"
    file.write_text(json.dumps({"Parameters": env_vars(DEVELOPMENT_ENVIRONMENT)}))
    modes = [json.dumps({"AuthMode": mode, **given}) for mode, given in AUTH_MODES.items()]
    done = run(SAM.with_name("python"), SCRIPT, ROOT / "template.yaml", file, *modes)
    assert done.returncode == 0, done.stderr
    return dict(zip(AUTH_MODES, json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("mode", AUTH_MODES)
def test_start_api_finds_the_function_of_every_route(read: dict[str, Any], mode: str) -> None:
    found: dict[str, str | None] = read[mode]["routes"]
    declared = [route["RouteKey"] for route in of_type("AWS::ApiGatewayV2::Route", AuthMode="none").values()]
    for verb, path in (key.split() for key in declared):
        for method in ANY_METHOD if verb == "ANY" else (verb,):
            expected = "ApprovalFunction" if path.startswith("/approvals") else "FrontDoorFunction"
            assert found[f"{method} {path}"] == expected


def test_the_variables_of_make_events_are_valid_for_every_function(read: dict[str, Any]) -> None:
    variables = read["none"]["variables"]
    assert variables.keys() == FOLDERS.keys()
    for given in variables.values():
        load_settings(given)


@pytest.fixture
def invoke(read: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Iterator[Invoke]:
    """Return a function that calls a handler with the variables that `sam local invoke` passes."""
    logical_ids = {(folder, is_worker(name)): name for name, folder in FOLDERS.items()}
    with environment() as emulated:
        endpoints = {name: value for name, value in emulated.items() if not name.startswith(PREFIX)}

        def invoked(function: str, event: Any) -> Any:
            folder, handler = handler_of(function)
            variables = read["none"]["variables"][logical_ids[folder, handler == "worker"]]
            wiring.ports.cache_clear()
            with monkeypatch.context() as patch:
                for name, value in {**variables, **endpoints}.items():
                    patch.setenv(name, value)
                return getattr(load_module(ROOT / "functions" / folder / "app.py"), handler)(event, None)

        yield invoked
    wiring.ports.cache_clear()


def is_worker(function: str) -> bool:
    return function.endswith("WorkerFunction")


def test_sample_events_of_tasks_run_with_the_variables_of_make_events(invoke: Invoke) -> None:
    tasks = {"provision", "provision_worker"}
    stable = {file: event for file, event in stable_events().items() if function_of(file) in tasks}
    assert unexpected_outcomes(invoke, stable, STABLE) == {}
    live = {file: event for file, event in live_events(invoke).items() if function_of(file) in tasks}
    assert len(live) == 2
    assert unexpected_outcomes(invoke, live, LIVE) == {}


NESTED = """
    AWSTemplateFormatVersion: "2010-09-09"
    Transform: AWS::Serverless-2016-10-31
    Globals: {Function: {Runtime: python3.13, Handler: app.handler, CodeUri: .}}
    Resources:
      Platform: {Type: AWS::Serverless::Application, Properties: {Location: platform.yaml}}
      WithGetAtt:
        Type: AWS::Serverless::Function
        Properties: {Environment: {Variables: {MCP_SETTINGS: !GetAtt Platform.Outputs.Settings}}}
      WithSub:
        Type: AWS::Serverless::Function
        Properties: {Environment: {Variables: {MCP_SETTINGS: !Sub "${Platform.Outputs.Settings}"}}}
    """

PLATFORM = """
    AWSTemplateFormatVersion: "2010-09-09"
    Resources: {Topic: {Type: AWS::SNS::Topic}}
    Outputs: {Settings: {Value: !Sub "MCP_AUTH_MODE=jwt"}}
    """


def test_sam_does_not_resolve_an_output_of_a_nested_stack_and_fixed_settings_count(tmp_path: Path) -> None:
    for name, text in {
        "template.yaml": NESTED,
        "platform.yaml": PLATFORM,
        "env.json": '{"Parameters": {}}',
    }.items():
        (tmp_path / name).write_text(dedent(text))
    done = run(SAM.with_name("python"), SCRIPT, tmp_path / "template.yaml", tmp_path / "env.json", "{}")
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)
    functions = found["variables"]
    assert tuple(functions[name]["MCP_SETTINGS"] for name in ("WithGetAtt", "WithSub")) == UNRESOLVED
    assert {load_settings(variables).auth_mode for variables in functions.values()} == {AuthMode.NONE}


def test_the_variables_name_a_table_a_worker_and_its_queue_if_the_environment_does_not() -> None:
    assert env_vars({}).keys() == {"MCP_TASK_TABLE", "MCP_TASK_WORKER", "MCP_TASK_QUEUE"}
    assert env_vars({"MCP_TASK_TABLE": "mine"})["MCP_TASK_TABLE"] == "mine"
