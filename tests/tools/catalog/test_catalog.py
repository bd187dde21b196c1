import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mcp_roundtrip_tools.__main__ import main as command
from mcp_roundtrip_tools.catalog.catalog import CatalogError, catalog_of, load_function_servers, main
from support.interpreters import run
from support.project import FUNCTIONS

TOOL = """
    from mcp_roundtrip import Server

    server = Server("any")

    @server.tool
    def {name}() -> str:
        return ""
    """


def write(functions: Path, **sources: str) -> Path:
    for owner, source in sources.items():
        (functions / owner).mkdir(parents=True)
        (functions / owner / "app.py").write_text(dedent(source))
    return functions


def read_catalog(functions: Path) -> dict[str, Any]:
    return catalog_of(load_function_servers(functions))


def test_the_shipped_catalog_and_edge_are_fresh():
    assert main(["--functions", str(FUNCTIONS), "--check"]) == 0


def test_owners_are_sorted_and_their_tools_keep_the_order_of_registration(tmp_path):
    both = TOOL.format(name="z") + "\n    @server.tool\n    def a() -> str:\n        return ''\n"
    later = "zoywxvut"  # in an order that no file system keeps
    functions = write(tmp_path, **{name: TOOL.format(name=f"of_{name}") for name in later}, one=both)
    catalog = read_catalog(functions)
    rows = [(row["owner"], row["definition"]["name"]) for row in catalog["tools"]]
    expected = [(name, f"of_{name}") for name in sorted(later)]
    assert rows == [expected[0], ("one", "z"), ("one", "a"), *expected[1:]]


def test_tools_that_every_client_can_call_come_first(tmp_path):
    asks = TOOL.format(name="asks").replace("@server.tool", '@server.tool(requires=["sampling"])')
    rows = read_catalog(write(tmp_path, one=asks, two=TOOL.format(name="plain")))["tools"]
    assert [row["definition"]["name"] for row in rows] == ["plain", "asks"]


def test_modules_without_a_server_and_the_front_door_are_omitted(tmp_path):
    functions = write(tmp_path, other="value = 1", front_door="raise RuntimeError")
    assert read_catalog(functions) == {"tools": []}


def test_a_tool_registered_by_two_functions_is_refused(tmp_path, capsys):
    functions = write(tmp_path, one=TOOL.format(name="same"), two=TOOL.format(name="same"))
    with pytest.raises(CatalogError, match=r"'same'.*'one'.*'two'"):
        read_catalog(functions)
    output = tmp_path / "catalog.json"
    assert command(["catalog", "--functions", str(functions), "--output", str(output)]) == 2
    assert "'same'" in capsys.readouterr().err
    assert not output.exists()


def test_a_tool_that_cannot_be_described_is_refused_by_file_tool_and_parameter(tmp_path, capsys):
    broken = TOOL.format(name="fetch").replace("fetch()", "fetch(where: type(server))")
    functions = write(tmp_path, good=TOOL.format(name="find"), odd=broken)
    assert command(["catalog", "--functions", str(functions)]) == 2
    place = f"{functions / 'odd/app.py'}: fetch: parameter 'where'"
    assert f"error: {place}: Server " in capsys.readouterr().err


def test_a_module_that_cannot_be_imported_is_reported_with_its_line_and_with_other_errors(tmp_path, capsys):
    sources = {"one": "value = 1\nvalue.nothing()", "two": "def broken(:", "three": "raise SystemExit"}
    functions = write(tmp_path, **sources)
    for name in sources:
        (functions / name / "package").mkdir()
        (functions / name / "package/server.py").write_text("import mcp_roundtrip")
    assert command(["catalog", "--functions", str(functions)]) == 2
    error = capsys.readouterr().err
    assert f'File "{functions / "one/app.py"}", line 2' in error
    assert f'File "{functions / "two/app.py"}", line 1' in error
    assert "AttributeError" in error
    assert "SyntaxError" in error
    assert "three/app.py cannot" in error
    assert "importlib" not in error


def test_another_function_that_cannot_be_imported_is_left_out_with_the_reason(tmp_path, capsys):
    functions = write(tmp_path / "functions", billing="import stripe_client", orders=TOOL.format(name="a"))
    assert [*load_function_servers(functions)] == ["orders"]
    [line] = capsys.readouterr().err.splitlines()
    assert "functions/billing/app.py is left out" in line
    assert "stripe_client" in line


def test_a_module_with_two_servers_is_refused(tmp_path):
    functions = write(tmp_path, one=TOOL.format(name="a") + "\n    another = Server('another')\n")
    with pytest.raises(CatalogError, match="2 servers"):
        read_catalog(functions)


def test_a_stale_or_missing_catalog_fails_the_check_and_stays_unchanged(tmp_path):
    functions = write(tmp_path, one=TOOL.format(name="a"))
    catalog = tmp_path / "catalog.json"
    command = ["--functions", str(functions), "--output", str(catalog)]
    assert main([*command, "--check"]) == 1
    assert not catalog.exists()
    assert main(command) == 0
    assert main([*command, "--check"]) == 0
    catalog.write_text("{}")
    assert main([*command, "--check"]) == 1
    assert catalog.read_text() == "{}"


def test_a_front_door_and_each_owner_have_the_digest_of_the_owners_features(tmp_path):
    functions = write(tmp_path, one=TOOL.format(name="a"), two=TOOL.format(name="b"), front_door="")
    command = ["--functions", str(functions)]

    def digests() -> dict[str, str]:
        assert main(command) == 0
        written = {path.parent.name: path.read_text().strip() for path in functions.glob("*/catalog.digest")}
        assert written == json.loads((functions / "front_door/catalog.json").read_text())["digests"]
        return written

    before = digests()
    (functions / "one/catalog.digest").write_text("of another deployment")
    assert main([*command, "--check"]) == 1
    source = (functions / "one/app.py").read_text()
    (functions / "one/app.py").write_text(source.replace('return ""', 'return "changed"'))
    assert digests() == before
    (functions / "one/app.py").write_text(source.replace("def a()", "def a(count: int = 1)"))
    assert digests()["one"] != before["one"]
    assert digests()["two"] == before["two"]


SCOPED = """
    from mcp_roundtrip import Server

    server = Server("any", scopes={hierarchy})

    @server.tool(scopes=["{scope}"])
    def {name}() -> str:
        return ""
    """


def test_the_catalog_has_scopes_and_their_hierarchy_and_says_whether_owners_hide_features(tmp_path):
    one = SCOPED.format(name="a", scope="read", hierarchy='{"admin": ["write"]}')
    two = SCOPED.format(name="b", scope="write", hierarchy='{"write": ["read"], "admin": ["billing"]}')
    catalog = read_catalog(write(tmp_path, one=one, two=two, three=TOOL.format(name="c")))
    assert [row.get("scopes") for row in catalog["tools"]] == [["read"], None, ["write"]]
    assert catalog["scopes"] == {"admin": ["billing", "write"], "write": ["read"]}
    hiding = SCOPED.format(name="a", scope="read", hierarchy="{}, hide_unauthorized=True")
    assert read_catalog(write(tmp_path / "hiding", one=hiding))["hideUnauthorized"] is True


@pytest.mark.parametrize(
    ("one", "two"), [("{}, hide_unauthorized=True", "{}"), ('{"x": ["y"]}', '{"y": ["x"]}')]
)
def test_owners_whose_scopes_contradict_each_other_are_refused(tmp_path, one, two):
    first, second = (SCOPED.format(name=n, scope="read", hierarchy=h) for n, h in (("a", one), ("b", two)))
    with pytest.raises(CatalogError, match=r"hide_unauthorized|scopes"):
        read_catalog(write(tmp_path, one=first, two=second))


def test_a_tool_that_models_refuse_is_in_the_catalog_and_its_line_is_shown(tmp_path):
    write(tmp_path, **{"one": TOOL.format(name="x" * 41), "front_door": ""})
    command = [sys.executable, "-m", "mcp_roundtrip_tools", "catalog", "--functions", str(tmp_path)]
    written = run(*command)
    assert f"{tmp_path / 'one/app.py'}:6: DefinitionWarning: {'x' * 41}: " in written.stderr
    assert "x" * 41 in (tmp_path / "front_door/catalog.json").read_text()
