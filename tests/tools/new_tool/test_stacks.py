"""Nested stacks: tools behind the front door of template.yaml in templates of their own."""

from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip_tools.deploy.checks import workers
from mcp_roundtrip_tools.deploy.deployment import Deployment
from mcp_roundtrip_tools.deploy.names import refused_names
from mcp_roundtrip_tools.deploy.parameters import defaults
from mcp_roundtrip_tools.new_tool.plan import NewToolError, plan_files, write
from mcp_roundtrip_tools.new_tool.short_yaml import member, one_line, section
from mcp_roundtrip_tools.new_tool.stacks import main, refresh
from mcp_roundtrip_tools.template.model import STACK_NAME, TemplateError
from mcp_roundtrip_tools.template.reader import Template
from mcp_roundtrip_tools.template.yaml_reader import load, parse
from support.project import ROOT, TASK_TOOL, TOOL, copy_project

STACK = "scratch_stack"
NESTED = Path("stacks", STACK, "template.yaml")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the project with two tools in a nested stack."""
    project = copy_project(tmp_path_factory.mktemp("stacks"))
    write(plan_files(project, TOOL, stack=STACK))
    write(plan_files(project, TASK_TOOL, tasks=True, stack=STACK))
    return project


def application(project: Path, **parameters: str) -> Any:
    template = Template(project / "template.yaml", {"AuthMode": "none", **parameters})
    return template.application({}, "http://api", "http://sqs")


def test_the_functions_of_a_nested_stack_have_the_same_settings_as_those_beside_the_front_door(
    project: Path,
) -> None:
    functions = application(project, AllowedOrigins="https://a.example,https://b.example").functions
    example, nested = functions[f"{STACK_NAME}_summarize"], functions[f"{STACK_NAME}_{TOOL}"]
    names = nested.environment.keys() & example.environment.keys()
    assert {name: nested.environment[name] for name in names} == {
        name: example.environment[name] for name in names
    }
    assert nested.environment.keys() == names
    assert (nested.layers, nested.memory_mb, nested.timeout_s, nested.log_format, nested.alias) == (
        example.layers,
        example.memory_mb,
        example.timeout_s,
        example.log_format,
        example.alias,
    )
    assert nested.code == project / "functions" / TOOL


def test_every_parameter_of_a_nested_stack_has_a_value(project: Path) -> None:
    """CloudFormation refuses a parameter whose value is AWS::NoValue and that has no default."""
    stack = load(project / "template.yaml")["Resources"]["ScratchStackStack"]["Properties"]
    nothing = {"Ref": "AWS::NoValue"}
    assert [name for name, value in stack["Parameters"].items() if nothing in value.get("Fn::If", ())] == []


def test_an_optional_layer_and_an_optional_variable_are_set_in_a_nested_stack_as_beside_it(
    project: Path,
) -> None:
    own = [{"Ref": "RoundtripLayer"}]
    layers = load(project / NESTED)["Globals"]["Function"]["Layers"]
    assert layers == {"Fn::If": ["Spans", [*own, {"Ref": "Traces"}], own]}
    endpoint = "https://collector.example/v1/traces"
    for given in ({}, {"TracesEndpoint": endpoint}):
        nested = application(project, **given).functions[f"{STACK_NAME}_{TOOL}"]
        found = nested.environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        assert found == given.get("TracesEndpoint")


def test_a_worker_of_a_nested_stack_has_the_settings_of_the_example(project: Path) -> None:
    functions = application(project).functions
    example, nested = (functions[f"{STACK_NAME}_{tool}_worker"] for tool in ("provision", TASK_TOOL))
    assert nested.environment["MCP_TASK_WAKE_QUEUE"].endswith(f"_{TASK_TOOL}_tasks")
    assert nested.environment["MCP_TASK_TABLE"] == example.environment["MCP_TASK_TABLE"]
    assert nested.dead_letter == example.dead_letter


def test_a_change_of_a_nested_template_is_noticed(project: Path) -> None:
    assert project / NESTED in application(project).sources


def test_a_tool_of_a_nested_stack_does_not_change_other_resources(project: Path) -> None:
    before, after = load(ROOT / "template.yaml"), load(project / "template.yaml")
    assert after["Resources"].keys() - before["Resources"].keys() == {"ScratchStackStack"}
    assert {name: after["Resources"][name] for name in before["Resources"]} == before["Resources"]


def test_a_nested_stack_gets_every_parameter_it_declares(project: Path) -> None:
    nested = load(project / NESTED)
    application = load(project / "template.yaml")["Resources"]["ScratchStackStack"]["Properties"]
    assert application["Location"] == NESTED.as_posix()
    assert application["Parameters"].keys() == nested["Parameters"].keys()


def test_a_new_layer_is_a_new_version_of_a_nested_function(project: Path) -> None:
    functions = load(project / NESTED)["Resources"]
    described = [each["Properties"].get("VersionDescription") for each in functions.values()]
    assert [each["Fn::Sub"] for each in described if each] == ["settings ${Settings} ${RoundtripLayer}"] * 3


def test_a_deployment_checks_the_names_and_the_workers_of_nested_stacks(project: Path) -> None:
    template = Deployment.of(project, "dev", Path("sam")).template
    values = defaults(template["Parameters"])
    stack = "s" * (64 - len(f"_{TASK_TOOL}_worker"))
    assert [*refused_names(template, values, stack)] == []
    [sentence] = refused_names(template, values, stack + "s")
    assert f"_{TASK_TOOL}_worker" in sentence
    assert f"{stack}_{TASK_TOOL}_worker" in workers(template, values, stack)


def test_nested_stacks_follow_template_yaml(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = refresh(project)
    assert written.keys() >= {project / NESTED, project / "template.yaml"}
    assert written == {path: path.read_text() for path in written}
    for name in ("template.yaml", NESTED.as_posix()):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((project / name).read_text())
    line = "        MCP_AUTH_MODE:"
    changed = (project / "template.yaml").read_text().replace(line, f"        OWN: !Ref AuthMode\n{line}")
    (tmp_path / "template.yaml").write_text(changed)
    monkeypatch.chdir(tmp_path)
    assert main() == 0
    nested = load(tmp_path / NESTED)
    assert nested["Globals"]["Function"]["Environment"]["Variables"]["OWN"] == {"Ref": "Own"}
    assert nested["Resources"] == load(project / NESTED)["Resources"]
    passed = load(tmp_path / "template.yaml")["Resources"]["ScratchStackStack"]["Properties"]["Parameters"]
    assert passed["Own"] == {"Ref": "AuthMode"}


def test_a_project_without_nested_stacks_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text("Resources: {}\n")
    assert refresh(tmp_path) == {}


def test_a_template_that_template_yaml_does_not_name_is_refused(tmp_path: Path) -> None:
    nested = tmp_path / NESTED
    nested.parent.mkdir(parents=True)
    nested.write_text("Resources: {}\n")
    (tmp_path / "template.yaml").write_text((ROOT / "template.yaml").read_text())  # names no such stack
    with pytest.raises(TemplateError, match="stacks/scratch_stack"):
        refresh(tmp_path)


@pytest.mark.parametrize("name", ["More", "../more", "more_"])
def test_an_invalid_name_of_a_stack_is_refused(project: Path, name: str) -> None:
    with pytest.raises(NewToolError, match="lower-case"):
        plan_files(project, "another", stack=name)


@pytest.mark.parametrize("stack", ["", STACK, "third"])
def test_no_two_stacks_have_a_tool_of_the_same_name(project: Path, stack: str) -> None:
    with pytest.raises(NewToolError, match="exists"):
        plan_files(project, TOOL, stack=stack)


def test_written_templates_have_lines_of_at_most_130_characters(project: Path) -> None:
    for name in ("template.yaml", NESTED):
        assert max(map(len, (project / name).read_text().splitlines())) <= 130


def test_a_long_value_continues_on_further_lines() -> None:
    value = parse("!If [A, !GetAtt B.Arn, !If [" + "C" * 80 + ", !Sub '${" + "D" * 40 + "}', 'a b']]")
    text = member("Name", value, "    ")
    assert len(text.splitlines()) > 1
    assert parse("Outer:\n" + text + "    Next: 1\n") == {"Outer": {"Name": value, "Next": 1}}


def test_keys_keep_their_types() -> None:
    members = {"Of": {"401": "a", "b": {"x" * 60: "y" * 60}}}
    assert parse(section("Name", members)) == {"Name": members}


@pytest.mark.parametrize(
    "text",
    [
        "!Sub a${b}",
        "!GetAtt A.B.C",
        "!If [A, !Ref B, {C: !Ref AWS::NoValue}]",
        "!Join [',', !Ref A]",
        "[!Condition A, !Not [!Equals [!Ref A, '']]]",
        "'0'",
        "plain",
    ],
)
def test_written_yaml_reads_as_the_same_data(text: str) -> None:
    assert parse(one_line(parse(text))) == parse(text)
