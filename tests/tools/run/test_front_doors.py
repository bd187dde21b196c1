import os
from itertools import pairwise

import pytest

from mcp_roundtrip_tools.catalog.catalog import main
from mcp_roundtrip_tools.run import fresh_catalogs
from support.project import edit
from support.sam_applications import FRONT_DOOR, front_door_template, rpc, write_application
from support.served_application import serve

TOOL = """
    from mcp_roundtrip import Server
    server = Server("{name}")

    @server.tool
    def {name}() -> str:
        return "{name}"

    handler = server.lambda_handler
    """
SOURCES = {
    "functions/front_door/app.py": FRONT_DOOR,
    "functions/greet/app.py": TOOL.format(name="greet"),
    "functions/part/app.py": TOOL.format(name="part"),
}


@pytest.fixture
def template(tmp_path):
    path = write_application(tmp_path, front_door_template(greet="Greet.Arn", part="Part"), SOURCES)
    assert main(["--functions", str(tmp_path / "functions")]) == 0
    return path


def names(app):
    return [tool["name"] for tool in rpc(app.url(), "tools/list").json()["result"]["tools"]]


def test_a_new_tool_is_listed_and_called_without_another_command(template, monkeypatch):
    monkeypatch.setattr(fresh_catalogs, "MAX_CATALOGS", 1)
    log: list[str] = []
    source = template.parent / "functions/greet/app.py"
    with serve(template, watch_interval_s=0, log=log.append) as app:
        assert names(app) == ["greet", "part"]
        assert not any("stale" in line for line in log)
        edit(source, "def greet(", "def salute(")
        assert names(app) == ["salute", "part"]
        called = rpc(app.url(), "tools/call", name="salute", arguments={}).json()
        assert called["result"]["content"][0]["text"] == "greet"
        edit(source, "server.tool", "server.tol")
        assert names(app) == ["salute", "part"]
        edit(source, "server.tol", "server.tool")
        edit(template.parent / "functions/part/app.py", "from", "undefined\nfrom")
        assert names(app) == ["salute", "part"]
    assert any("catalog.json is stale" in line and "make catalog" in line for line in log)
    refused = [line for line in log if "previous catalog" in line]
    assert ["tol" in line for line in refused] == [True, False]
    assert f'{source.parents[1] / "part/app.py"}", line 2' in refused[-1]
    assert len(fresh_catalogs._catalog_texts) == 1


def test_a_change_within_a_second_that_keeps_the_size_of_a_file_counts(template):
    source = template.parent / "functions/greet/app.py"
    with serve(template, watch_interval_s=0) as app:
        for number, (before, name) in enumerate(pairwise(["greet", "salut", "hello"])):
            edit(source, before, name)
            os.utime(source, ns=(0, 1_800_000_000_000_000_000 + number))
            assert names(app) == [name, "part"]
            assert "result" in rpc(app.url(), "tools/call", name=name, arguments={}).json()


def test_a_catalog_is_built_with_the_variables_of_the_functions_and_no_credentials(template, monkeypatch):
    monkeypatch.setenv("AWS_PROFILE", "production")
    source = template.parent / "functions/greet/app.py"
    files = dict.fromkeys(("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"), os.devnull)
    no_credentials = {**files, "AWS_EC2_METADATA_DISABLED": "true"}
    check = f"assert {no_credentials}.items() <= os.environ.items() and 'AWS_PROFILE' not in os.environ"
    edit(source, "from", f"import os\n{check}\nfrom")
    edit(source, "server.tool", "server.tool(name=os.environ['NAME'])")
    edit(template, "MCP_AUTH_MODE: none", "MCP_AUTH_MODE: none, NAME: salute")
    with serve(template, watch_interval_s=0) as app:
        assert names(app) == ["salute", "part"]
        edit(template, "salute", "welcome")
        assert names(app) == ["welcome", "part"]


def test_the_functions_beside_one_with_a_mistake_are_served(template):
    with serve(template, watch_interval_s=0) as app:
        edit(template.parent / "functions/greet/app.py", "from", "import nowhere\nfrom")
        assert names(app) == ["greet", "part"], "of the previous catalog"
        error = rpc(app.url(), "tools/call", name="greet", arguments={}).json()["error"]
        assert "'nowhere'" in error["message"]
        assert rpc(app.url(), "tools/call", name="part", arguments={}).json()["result"]["content"]


def test_tools_of_a_function_that_cannot_run_are_not_listed_and_the_catalog_is_not_stale(template):
    part = "CodeUri: functions/part}"
    edit(template, part, f"{part[:-1]}, Runtime: nodejs22.x}}")
    log: list[str] = []
    with serve(template, log=log.append) as app:
        assert names(app) == ["greet"]
    assert not any("stale" in line for line in log)


BY_PATTERN = """
    Globals:
      Function: {Handler: app.handler, Timeout: 20, Environment: {Variables: {MCP_AUTH_MODE: none}}}
    Resources:
      Door:
        Type: AWS::Serverless::Function
        Properties:
          FunctionName: !Sub ${AWS::StackName}_front_door
          CodeUri: functions/front_door
          Environment:
            Variables:
              MCP_OWNERS: !Sub arn:aws:lambda:us-east-1:000000000000:function:${AWS::StackName}_*:live
          Events: {E: {Type: HttpApi}}
      Greet:
        Type: AWS::Serverless::Function
        Properties:
          FunctionName: !Sub ${AWS::StackName}_greet
          CodeUri: functions/greet
          AutoPublishAlias: live
      GreetWorker:
        Type: AWS::Serverless::Function
        Properties: {FunctionName: !Sub "${AWS::StackName}_greet_worker", CodeUri: functions/greet}
      Other:
        Type: AWS::Serverless::Function
        Properties: {FunctionName: other, CodeUri: functions/part}
    """


def test_the_owners_of_a_pattern_have_such_names_and_replace_a_stale_catalog_in_memory(tmp_path):
    path = write_application(tmp_path, BY_PATTERN, SOURCES)
    catalog = tmp_path / "functions/front_door/catalog.json"
    catalog.write_text('{"tools": []}\n')
    with serve(path, watch_interval_s=0) as app:
        assert names(app) == ["greet"]
        called = rpc(app.url(), "tools/call", name="greet", arguments={}).json()
        assert called["result"]["content"][0]["text"] == "greet"
    assert catalog.read_text() == '{"tools": []}\n'
