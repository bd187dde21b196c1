"""`Player` takes what the deployment has from the template above the application, or from an argument."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.internal_errors import SettingsError
from mcp_roundtrip_testing import WITH_TASKS, CallFailed, Player, SettingMissing
from mcp_roundtrip_testing.execution_environments import unset_settings
from mcp_roundtrip_testing.task_table import TaskTable
from mcp_roundtrip_tools.template.model import TemplateError
from support.sam_applications import write_application

SOURCE = """
    from mcp_roundtrip import Context, Server

    server = Server("greet")

    @server.tool{options}
    def greet(ctx: Context) -> str:
        return "Hello " + ctx.elicit("name", "Who?", str)

    handler = server.lambda_handler
    worker = server.worker_handler
    """
TEMPLATE = """
    Parameters:
      AuthMode: {Type: String, AllowedValues: [bearer, none]}
      Bucket: {Type: String}
      HasTable: {Type: String, Default: "true"}
    Conditions: {HasTable: !Equals [!Ref HasTable, "true"]}
    Globals:
      Function:
        Environment:
          Variables:
            MCP_AUTH_MODE: !Ref AuthMode
            MCP_AUDIENCE: https://mcp.test/mcp
            MCP_STATE_KEY_ARN: !GetAtt StateKey.Arn
            MCP_STATE_ENCRYPTION_KEY_ARN: !GetAtt MacKey.Arn
            MCP_TASK_TABLE: !If [HasTable, !Ref Tasks, ""]
            BUCKET: !Ref Bucket
    Resources:
      StateKey: {Type: AWS::KMS::Key, Properties: {KeySpec: ECC_NIST_P256, KeyUsage: SIGN_VERIFY}}
      MacKey: {Type: AWS::KMS::Key, Properties: {KeySpec: HMAC_256, KeyUsage: GENERATE_VERIFY_MAC}}
      Tasks: {Type: AWS::DynamoDB::Table, Condition: HasTable, Properties: {KeySchema: []}}
      WorkerFunction:
        Type: AWS::Serverless::Function
        Properties: {CodeUri: src, Handler: app.worker, AutoPublishAlias: live}
      ServerFunction:
        Type: AWS::Serverless::Function
        Properties:
          CodeUri: src
          Handler: app.handler
          Environment: {Variables: {MCP_TASK_WORKER: !Ref WorkerFunction.Version}}
    """
WITHOUT_TABLE = TEMPLATE.replace('Default: "true"', 'Default: "false"')
WITHOUT_KEY = TEMPLATE.replace("MCP_STATE_KEY_ARN: !GetAtt StateKey.Arn", 'MCP_STATE_KEY_ARN: ""')
WITHOUT_TABLE_IN_ONE = TEMPLATE.replace("{Variables: {", '{Variables: {MCP_TASK_TABLE: "", ')
WITHOUT_WORKER = TEMPLATE.replace(
    "Environment: {Variables: {MCP_TASK_WORKER: !Ref WorkerFunction.Version}}", "Timeout: 9"
)


def application(folder: Path, template: str = TEMPLATE, options: str = "") -> Path:
    """Write an application with a template, and return the file of its function."""
    sources: Mapping[str, str] = {"src/app.py": SOURCE.replace("{options}", options)}
    return write_application(folder, template, sources).parent / "src/app.py"


def test_with_a_table_a_client_that_cannot_be_asked_gets_a_link(tmp_path):
    played = Player(application(tmp_path), client="codex").call("greet", name="Ada")
    assert (played.text, played.channels) == ("Hello Ada", ("page",))


@pytest.mark.parametrize("template", [WITHOUT_TABLE, WITHOUT_TABLE_IN_ONE])
def test_without_a_table_the_same_client_gets_an_error(tmp_path, template):
    with pytest.warns(SettingMissing, match="MCP_TASK_TABLE: .* greet "):
        played = Player(application(tmp_path, template), client="codex").call("greet")
    assert played.failed
    assert ":\n- Who?" in played.result["content"][0]["text"]


@pytest.mark.parametrize("support", ["optional", "required"])
@pytest.mark.parametrize(
    ("template", "setting"), [(WITHOUT_TABLE, "MCP_TASK_TABLE"), (WITHOUT_WORKER, "MCP_TASK_WORKER")]
)
def test_a_tool_with_tasks_fails_where_the_deployment_lacks_what_they_need(
    tmp_path, support, template, setting
):
    app = application(tmp_path, template, f"(task={support!r})")
    with pytest.raises(SettingsError, match=f"{setting}: .* greet .* tasks"):
        Player(app, WITH_TASKS).call("greet")


def test_a_question_fails_where_the_deployment_has_no_key(tmp_path):
    play = Player(application(tmp_path, WITHOUT_KEY))
    with pytest.warns(SettingMissing, match="MCP_STATE_KEY_ARN: .* greet "):
        played = play.call("greet")
    assert played.error["code"] == -32603
    assert isinstance(played.raised, SettingsError)


def test_a_misspelt_setting_of_a_template_is_a_warning(tmp_path):
    misspelt = TEMPLATE.replace("            BUCKET:", "            MCP_MAX_ROUND: 3\n            BUCKET:")
    with pytest.warns(SettingMissing, match=r"MCP_MAX_ROUND is .* MCP_MAX_ROUNDS\?"):
        Player(application(tmp_path, misspelt))


def test_a_changed_template_is_read_again(tmp_path):
    app = application(tmp_path)
    assert "task_table" not in unset_settings(app)
    template = tmp_path / "template.yaml"
    template.write_text(template.read_text().replace('Default: "true"', 'Default: "false"'))
    os.utime(template, ns=(time.time_ns(), time.time_ns() + 1_000_000))
    assert "task_table" in unset_settings(app)
    for no_function in (tmp_path / "tests/example.py", Path("/nowhere/app.py")):
        assert unset_settings(no_function) == frozenset()


def test_a_template_that_cannot_be_deployed_is_an_error(tmp_path):
    app = application(tmp_path, TEMPLATE.replace("!Ref AuthMode", "magic"))
    with pytest.raises(TemplateError, match="MCP_AUTH_MODE: "):
        Player(app)


def test_the_argument_replaces_the_template(tmp_path):
    app = application(tmp_path, WITHOUT_TABLE)
    assert Player(app, client="codex", task_table=True).call("greet", name="Ada").channels == ("page",)
    table = Player(app, task_table=True).table
    assert isinstance(table, TaskTable)
    assert not Player(app, client="codex", ports={"tasks": table}).call("greet").failed


def test_without_a_template_there_is_a_table_unless_the_argument_says_no():
    server = Server("x")

    @server.tool
    def greet(ctx: Context) -> str:
        return ctx.elicit("name", "Who?", str)

    assert Player(server, client="codex").call("greet", name="Ada").channels == ("page",)
    with pytest.warns(SettingMissing):
        assert Player(server, client="codex", task_table=False).call("greet").failed
    with pytest.warns(SettingMissing), pytest.raises(CallFailed):
        Player(server, client="codex", task_table=False).call("greet").question("name")


def test_the_reader_of_templates_is_imported_only_for_a_template(tmp_path):
    (tmp_path / "app.py").write_text("from mcp_roundtrip import Server\nserver = Server('x')\n")
    program = (
        "import sys; from pathlib import Path; from mcp_roundtrip_testing import Player\n"
        f"Player(Path({str(tmp_path / 'app.py')!r})).request('tools/list')\n"
        "assert not any(name.startswith(('yaml', 'mcp_roundtrip_tools')) for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
