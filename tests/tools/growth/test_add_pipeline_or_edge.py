import json
from pathlib import Path

import pytest

from mcp_roundtrip_tools.__main__ import main as command
from mcp_roundtrip_tools.catalog.catalog import main as catalog
from mcp_roundtrip_tools.growth.add_pipeline_or_edge import main, plan_part
from mcp_roundtrip_tools.growth.new_tool_and_function import plan_function, plan_tool
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT, contents, edit

PARTS = ("pipeline", "edge")
WORKFLOW = ".github/workflows/deploy.yml"
PIPELINE = {
    WORKFLOW,
    ".github/workflows/rollback.yml",
    ".github/actions/deploy/action.yml",
    "platform/pipeline/template.yaml",
}
EDGE, ROUTES = "platform/edge/template.yaml", "platform/edge/routes.yaml"


def files(project: Path) -> dict[str, bytes]:
    return {path: content for path, content in contents(project).items() if (project / path).is_file()}


@pytest.mark.parametrize("part", PARTS)
def test_this_repository_has_the_parts_already(part, capsys):
    assert main([part, "--project", str(ROOT)]) == 0
    assert "up to date" in capsys.readouterr().out


def versions_of_python(project: Path) -> set[str]:
    texts = [(project / path).read_text("utf-8") for path in PIPELINE if path.startswith(".github")]
    lines = [line.split("#")[0] for text in texts for line in text.splitlines()]
    return {line.split('"')[1] for line in lines if "python-version:" in line}


def test_the_pipeline_is_that_of_this_repository_with_the_python_of_the_application(project, capsys):
    before = files(project)
    assert main(["pipeline", "--project", str(project)]) == 0
    after = files(project)
    assert after.keys() - before.keys() == PIPELINE
    assert {path: after[path] for path in before} == before
    assert versions_of_python(project) == {"3.13"}
    assert after["platform/pipeline/template.yaml"] == (ROOT / "platform/pipeline/template.yaml").read_bytes()
    shown = capsys.readouterr().out
    assert "GitHubEnvironment=default ApplicationStack=orders\n" in shown
    assert "GitHubEnvironment=prod ApplicationStack=orders-prod\n" in shown


def test_types_and_functions_that_the_deployer_may_not_create_are_named(project, capsys):
    other = "  Other: {Type: AWS::Serverless::Function, Properties: {FunctionName: other}}"
    more = f"{other}\n  Unnamed: {{Type: AWS::Serverless::Function}}\n  Topic: {{Type: AWS::SNS::Topic}}"
    more += "\n  'Fn::Transform': {Name: AWS::Include, Parameters: {Location: s3://other/part.yaml}}"
    more += "\n  Files: {Type: AWS::Serverless::Application, Properties: {Location: files.yaml}}"
    (project / "files.yaml").write_text("Resources: {Bucket: {Type: AWS::S3::Bucket}}")
    edit(project / "template.yaml", "Outputs:\n", f"{more}\nOutputs:\n")
    assert main(["pipeline", "--project", str(project)]) == 0
    shown = capsys.readouterr().out
    assert "for AWS::S3::Bucket, AWS::SNS::Topic:" in shown
    assert "for Other, Unnamed:" in shown


def table(project: Path) -> dict[str, dict[str, str]]:
    text = (project / EDGE).read_text("utf-8")
    found: dict[str, dict[str, str]] = json.loads(text.partition("const OWNERS = ")[2].partition(";\n")[0])
    return found


def test_one_function_needs_no_routes_and_gets_them_with_the_front_door(project):
    write(plan_part(project, "edge"))
    assert table(project) == {"tools/call": {}, "prompts/get": {}, "resources/read": {}}
    assert not (project / ROUTES).exists()
    write(plan_function(project, "translate"))
    assert table(project)["tools/call"] == {"order_status": "server", "translate": "translate"}
    assert {"ServerRoute", "TranslateRoute"} <= load(project / ROUTES)["Resources"].keys()
    write(plan_tool(project, "find_words", "translate"))
    assert table(project)["tools/call"]["find_words"] == "translate"
    assert plan_part(project, "edge") == {}


def test_the_catalog_writes_the_edge_and_its_check_names_what_is_stale(project, capsys):
    write(plan_function(project, "translate"))
    write(plan_part(project, "edge"))
    assert table(project)["tools/call"] == {"order_status": "server", "translate": "translate"}
    current = files(project)
    functions = ["--functions", str(project / "functions")]
    assert catalog([*functions, "--check"]) == 0
    for path in (EDGE, ROUTES):
        edit(project / path, "translate", "other")
    assert catalog([*functions, "--check"]) == 1
    error = capsys.readouterr().err
    assert [path for path in (EDGE, ROUTES) if f"{path} is stale" not in error] == []
    assert catalog(functions) == 0
    assert files(project) == current


def test_a_file_that_differs_is_kept_unless_the_user_insists(project, capsys):
    write(plan_part(project, "pipeline"))
    written = files(project)
    edit(project / WORKFLOW, "name: Deploy", "name: Mine")
    (project / "platform/pipeline/template.yaml").unlink()
    before = files(project)
    assert command(["add", "pipeline", "--project", str(project)]) == 2
    error = capsys.readouterr().err
    assert f"{WORKFLOW} exists " in error
    assert "make add PART=pipeline FORCE=1" in error
    assert "rollback.yml" not in error
    assert files(project) == before
    assert main(["pipeline", "--project", str(project), "--force"]) == 0
    assert files(project) == written


OLDER = ("platform/template.yaml", "    Version: ", "    Version: 0.0.1 #", "run make upgrade")


@pytest.mark.parametrize(
    ("path", "before", "after", "sentence"),
    [
        OLDER,
        ("template.yaml", "platform/template.yaml", "missing/template.yaml", "missing/template.yaml"),
        ("template.yaml", "AWS::Serverless::Application", "AWS::SNS::Topic", "existing-application.md"),
        ("template.yaml", "Runtime: python3.13", "Runtime: nodejs22.x", "such as python3.13"),
        ("samconfig.toml", "[prod.", "[stage.", "no environment 'prod'"),
        ("samconfig.toml", 'stack_name = "orders-prod"', "", "stack_name in [prod.global.parameters]"),
    ],
)
def test_an_application_that_cannot_get_the_pipeline_is_not_changed(
    path, before, after, sentence, project, capsys
):
    edit(project / path, before, after)
    found = files(project)
    assert command(["add", "pipeline", "--project", str(project)]) == 2
    [error] = capsys.readouterr().err.splitlines()
    assert sentence in error
    assert files(project) == found


def test_a_function_that_an_environment_does_not_have_is_none(project, capsys):
    head = "  ServerFunction:\n    Type: AWS::Serverless::Function\n"
    edit(project / "template.yaml", head, f"{head}    Condition: Never\n")
    edit(project / "template.yaml", "\nResources:\n", "\nConditions: {Never: !Equals [a, b]}\nResources:\n")
    assert command(["add", "pipeline", "--project", str(project)]) == 2
    assert "python3.13 in default" in capsys.readouterr().err


@pytest.mark.parametrize("part", PARTS)
def test_a_folder_without_an_application_is_refused(part, tmp_path, capsys):
    assert command(["add", part, "--project", str(tmp_path)]) == 2
    assert f"error: there is no {tmp_path / 'template.yaml'}: " in capsys.readouterr().err
    assert contents(tmp_path) == {}


def test_an_edge_for_functions_that_cannot_share_a_front_door_is_refused(project, capsys):
    write(plan_function(project, "translate"))
    edit(project / "functions/translate/app.py", "translate", "order_status")
    assert command(["add", "edge", "--project", str(project)]) == 2
    error = capsys.readouterr().err
    assert "'order_status'" in error
    assert "'server'" in error


@pytest.mark.parametrize("part", ["", "edges", "../edge"])
def test_an_unknown_part_is_refused(part, project, capsys):
    before = files(project)
    assert command(["add", part, "--project", str(project)]) == 2
    assert "pipeline or edge" in capsys.readouterr().err
    assert files(project) == before
