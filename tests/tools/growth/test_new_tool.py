import re
from pathlib import Path
from textwrap import indent

import pytest
import yaml

from mcp_roundtrip_testing.execution_environments import load_server
from mcp_roundtrip_tools.catalog.catalog import main as catalog
from mcp_roundtrip_tools.growth.new_tool_and_function import new_tool as main
from mcp_roundtrip_tools.growth.new_tool_and_function import plan_function, plan_tool
from mcp_roundtrip_tools.growth.written_files import GrowthError, write
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import contents, edit
from tools.growth.conftest import assert_refused, changed_lines

SERVER = "functions/server/app.py"
POLICIES = [f"!GetAtt Platform.Outputs.{name}Policy" for name in ("Function", "State", "ParkedCalls")]
FLOW = ("".join(f"\n        - {each}" for each in POLICIES), f" [{', '.join(POLICIES)}]")
"""The policies of the role of the function, and the same in one line."""
CODE = "      CodeUri: functions/server/\n"
CODE_IN_PACKAGE = "      CodeUri: functions/\n      Handler: server.app.handler\n"
TAGS = "      Tags: &tags {a: b}\n"


def changes(project: Path, *arguments: str) -> set[str]:
    """Run the command; return the files that it added or changed."""
    before = contents(project)
    assert main([*arguments, "--project", str(project)]) == 0
    after = contents(project)
    return {path for path in after if after[path] and after[path] != before.get(path)}


def test_every_tool_has_a_module_a_test_and_events_and_is_registered_in_order(project):
    assert main(["find_customers", "--project", str(project)]) == 0
    assert changes(project, "find_parts") == {
        "events/server/find_parts.json",
        "events/server/find_parts_bad_arguments.json",
        "functions/server/app.py",
        "functions/server/find_parts.py",
        "tests/test_find_parts.py",
    }
    assert list(load_server(project / SERVER).tools) == ["order_status", "find_customers", "find_parts"]
    text = (project / SERVER).read_text("utf-8")
    assert text.endswith(
        '."\n\n\nserver.tool(find_customers)\nserver.tool(find_parts)\n\nhandler = server.lambda_handler\n'
    )
    assert "one_of\n\nfrom find_customers import find_customers\nfrom find_parts import" in text


def test_only_the_first_tool_with_tasks_changes_the_template(project):
    assert "template.yaml" in changes(project, "count_parts", "--tasks")
    assert "template.yaml" not in changes(project, "count_orders", "--tasks")
    tools = load_server(project / SERVER).tools
    assert {name: tool.task for name, tool in tools.items()} == {
        "order_status": None,
        "count_parts": "optional",
        "count_orders": "optional",
    }
    assert (project / SERVER).read_text("utf-8").count("worker = server.worker_handler") == 1


def test_a_worker_has_the_variables_and_properties_of_its_function(project):
    template = project / "template.yaml"
    variables = "        Variables:\n          ORDERS_URL: !Sub https://${AWS::StackName}.example\n"
    own = f"      MemorySize: 2048\n      Timeout: 10\n      Environment:\n{variables}"
    edit(template, CODE, CODE + own)
    head = "  ServerFunction:\n    Type: AWS::Serverless::Function\n"
    condition = {"Condition": "Always"}
    attributes = {**condition, "IgnoreGlobals": ["VpcConfig"], "Metadata": {"BuildMethod": "makefile"}}
    written = yaml.safe_dump(attributes)
    edit(template, head, head + indent(written, "    "))
    written = template.read_text("utf-8")
    write(plan_tool(project, "count_parts", tasks=True))
    removed, added = changed_lines(written, template.read_text("utf-8"))
    assert removed == []
    assert max(map(len, added)) <= 110
    resources = load(template)["Resources"]
    assert attributes.items() <= resources["ServerWorkerFunction"].items()
    assert condition.items() <= resources["ServerTasks"].items()
    worker, server = (resources[f"{each}Function"]["Properties"] for each in ("ServerWorker", "Server"))
    assert (worker["MemorySize"], worker["Timeout"], worker["Handler"]) == (2048, 900, "app.worker")
    orders = {"Fn::Sub": "https://${AWS::StackName}.example"}
    assert worker["Environment"]["Variables"]["ORDERS_URL"] == orders
    assert worker["Environment"]["Variables"].keys() == {"ORDERS_URL", "MCP_TASK_QUEUE"}
    own = server["Environment"]["Variables"].keys()
    assert own == {"ORDERS_URL", "MCP_TASK_QUEUE", "MCP_TASK_WORKER"}
    policies = [each["Fn::GetAtt"][1] for each in resources["ServerRole"]["Properties"]["ManagedPolicyArns"]]
    assert policies[-1] == "Outputs.TaskPolicy"
    assert len({*policies}) == len(policies) == 4


def test_the_worker_of_a_module_of_another_name_has_its_handler_there(project):
    (project / SERVER).rename(project / "functions/server/orders.py")
    edit(project / "template.yaml", CODE, f"{CODE}      Handler: orders.handler\n")
    write(plan_tool(project, "count_parts", tasks=True))
    resources = load(project / "template.yaml")["Resources"]
    assert resources["ServerWorkerFunction"]["Properties"]["Handler"] == "orders.worker"


def test_files_keep_their_line_endings(project):
    template, app = project / "template.yaml", project / "functions/server/app.py"
    for path in (template, app):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = template.read_bytes().splitlines(keepends=True)
    write(plan_tool(project, "find_parts", tasks=True))
    for path in (template, app):
        assert {line[-2:] for line in path.read_bytes().splitlines(keepends=True)} == {b"\r\n"}
    assert set(before) <= set(template.read_bytes().splitlines(keepends=True))
    assert b"\r" not in (project / "functions/server/find_parts.py").read_bytes()


def test_what_the_author_wrote_stays(project):
    app = project / SERVER
    written = app.read_text("utf-8").replace("server = Server", "mcp = Server").replace("server.", "mcp.")
    written = written.replace("@server", "@mcp") + "\nprint  # after the handler\n"
    app.write_text(written)
    write(plan_tool(project, "find_parts", tasks=True))
    changed = app.read_text("utf-8")
    added = [
        "from find_parts import find_parts",
        'mcp.tool(task="optional")(find_parts)',
        "worker = mcp.worker_handler",
    ]
    assert [line for line in changed.splitlines() if line not in written.splitlines()] == added


def test_a_module_that_only_imports_its_server_gets_the_tool(project):
    app = project / SERVER
    app.rename(app.with_name("tools.py"))
    app.write_text("from tools import server\n\nhandler = server.lambda_handler\n")
    write(plan_tool(project, "find_parts"))
    [imports, registration] = app.read_text("utf-8").split("\n\n\n")
    assert imports == "from tools import server\nfrom find_parts import find_parts"
    assert registration == "server.tool(find_parts)\n\nhandler = server.lambda_handler\n"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((SERVER, "handler = server.lambda_handler", "handler = print"), "no line `handler = "),
        ((SERVER, "server = ", "raise SystemError('offline')\nserver = "), "SystemError: offline"),
        ((SERVER, "server = ", "server = ("), "app.py"),
        ((SERVER, "def order_status", "def find_parts"), "find_parts"),
        (("template.yaml", "CodeUri: functions/server/", "CodeUri: nowhere/"), "imports mcp_roundtrip"),
        (("template.yaml", "Role: !GetAtt ServerRole.Arn", "Role: arn:aws:iam::1:role/r"), "Role: !GetAtt"),
        (("template.yaml", "!Sub ${AWS::StackName}_server", "server"), "FunctionName"),
        (("template.yaml", "Outputs:\n", "  ServerTasks: {Type: T}\nOutputs:\n"), "ServerTasks"),
        (("template.yaml", FLOW[0], FLOW[1]), "block style"),
        (("template.yaml", CODE, CODE_IN_PACKAGE), "from a package.* CodeUri to functions/server/ "),
        (("template.yaml", CODE, f"{CODE}{TAGS}      VpcConfig: *tags\n"), "VpcConfig: .*alias"),
        (("template.yaml", CODE, f"{CODE}{TAGS}      <<: *tags\n"), "ServerFunction: .*alias"),
        (("template.yaml", CODE, f"{CODE}{TAGS}"), "duplicate anchor"),
    ],
)
def test_an_application_that_cannot_get_a_tool_is_not_changed(project, change, reason, capsys):
    assert_refused(project, change, "new-tool", "find_parts", "--tasks")
    assert re.search(reason, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("app", "reserved"),
        ("order_status", "order_status"),
        ("json", "installed module"),
        ("pydantic", "installed module"),
        ("Parts", "lower-case"),
        ("", "make new-tool NAME="),
    ],
)
def test_a_name_that_is_taken_is_refused(project, name, reason):
    with pytest.raises(GrowthError, match=reason):
        plan_tool(project, name)


def test_one_of_several_functions_has_to_be_named_and_a_name_belongs_to_one(project):
    write(plan_function(project, "translate"))
    with pytest.raises(TemplateError, match=r"FUNCTION=…: server, translate"):
        plan_tool(project, "find_parts")
    with pytest.raises(TemplateError, match=r"'nowhere'.*server, translate"):
        plan_tool(project, "find_parts", "nowhere")
    assert changes(project, "find_parts", "--function", "translate") >= {
        "functions/front_door/catalog.json",
        "functions/translate/catalog.digest",
        "functions/translate/find_parts.py",
    }
    assert catalog(["--functions", str(project / "functions"), "--check"]) == 0
    (project / "tests/test_order_status.py").unlink()
    found = contents(project)
    with pytest.raises(GrowthError, match=r"'order_status'.*'server'.*'translate'"):
        plan_tool(project, "order_status", "translate")
    assert contents(project) == found
