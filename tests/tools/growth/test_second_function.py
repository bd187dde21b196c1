"""``mcp-roundtrip new-function`` in a new application, which gets the front door."""

import re

import pytest

from mcp_roundtrip import Server
from mcp_roundtrip_testing.execution_environments import load_module
from mcp_roundtrip_tools.growth.new_tool_and_function import plan_function
from mcp_roundtrip_tools.growth.written_files import GrowthError, write
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import contents, edit
from tools.growth.conftest import assert_refused, changed_lines

SERVER = "functions/server/app.py"


def test_the_second_function_adds_the_front_door_and_the_third_does_not(project):
    front_door = {
        "functions/front_door/app.py",
        "functions/front_door/catalog.json",
        "tests/test_front_door.py",
    }
    (project / SERVER).rename(project / "functions/server/tools.py")
    (project / SERVER).write_text("from tools import server\n\nhandler = server.lambda_handler\n")
    before = set(contents(project))
    write(plan_function(project, "translate"))
    second = {path for path in contents(project) if "." in path} - before
    assert second == front_door | {
        "events/translate/translate.json",
        "events/translate/translate_bad_arguments.json",
        "functions/server/catalog.digest",
        "functions/translate/app.py",
        "functions/translate/catalog.digest",
        "tests/test_translate.py",
    }
    files = {path.relative_to(project).as_posix() for path in plan_function(project, "summarize")}
    assert files & front_door == {"functions/front_door/catalog.json"}


def test_a_template_keeps_its_lines_and_comments_and_new_roles_have_the_rules_of_the_others(project):
    rules = (
        "      Path: /tools/\n      PermissionsBoundary: !Sub arn:aws:iam::${AWS::AccountId}:policy/limits\n"
    )
    template, role = project / "template.yaml", "  ServerRole:\n    Type: AWS::IAM::Role\n    Properties:\n"
    edit(template, role, role + rules)
    written = template.read_text("utf-8")
    write(plan_function(project, "translate", tasks=True))
    removed, _ = changed_lines(written, template.read_text("utf-8"))
    assert removed == ["        Function: !Ref ServerFunction.Alias"]
    resources = load(template)["Resources"]
    for name in ("Translate", "FrontDoor"):
        properties = resources[f"{name}Role"]["Properties"]
        assert properties["Path"] == "/tools/"
        assert "PermissionsBoundary" in properties
    assert "Metadata" not in resources["TranslateFunction"], "sam builds it without a Makefile of functions"


@pytest.mark.parametrize("legacy", [{"legacy_tasks": "sep-2322"}, {"legacy_clients": False}])
def test_the_front_door_has_the_options_of_the_server_that_clients_see(project, legacy):
    app = project / SERVER
    options = f"""Server(
        "orders",
        version="2.1.0",
        title='The "orders" desk',
        instructions="Look an order up first.\\nThen ask.",
        icons={[{"src": "https://orders.example/icon.png", "sizes": ["48x48"]}]},
        page_size=5,
        **{legacy},
    )"""
    edit(app, 'Server("orders")', options)
    write(plan_function(project, "translate"))
    server = load_module(app).server
    front_door = load_module(project / "functions/front_door/app.py").front_door
    assert front_door.info == server.info
    usual = Server("orders").endpoint.options
    for option in ("instructions", "branding", "page_size", *legacy):
        given = getattr(server.endpoint.options, option)
        assert getattr(front_door.endpoint.options, option) == given != getattr(usual, option)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ((SERVER, "def order_status", "def translate"), "'translate' .*registered"),
        ((SERVER, "from ", "import nowhere\nfrom "), "(?s){project}/functions/server/app.py.*'nowhere'"),
        (("template.yaml", "${AWS::StackName}_server", "${AWS::StackName}_other"), "FunctionName: .*_server"),
        (("template.yaml", "  Endpoint:", "  Routes:"), r"no Resources\.Endpoint"),
        (("template.yaml", "MCP_SETTINGS", "SETTINGS"), "MCP_SETTINGS in Globals"),
        (("template.yaml", "  Platform:", "  Other:"), "no Platform"),
        (("template.yaml", "  ServerRole:", "  TranslateRole:"), "TranslateRole"),
    ],
)
def test_an_application_that_cannot_get_a_function_is_not_changed(project, change, reason, capsys):
    assert_refused(project, change, "new-function", "translate", "--tasks")
    assert re.search(reason.format(project=project), capsys.readouterr().err)


@pytest.mark.parametrize("path", ["tests/test_front_door.py", "tests/test_translate.py", "events/translate"])
def test_no_file_of_the_author_is_replaced(project, path):
    (project / path).mkdir()
    with pytest.raises(GrowthError, match="exists already"):
        plan_function(project, "translate")
