import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip_testing import WITH_TASKS, Player, crashes
from mcp_roundtrip_tools.growth.new_tool_and_function import plan_tool
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.lint.checking import main as lint
from mcp_roundtrip_tools.new.command import render
from support.documents import code_blocks, read_document, run_blocks
from support.project import ROOT

ADDING = "docs/guides/adding-a-tool.md"
TOOL, TEST = code_blocks("README.md", "python")
OWN_TOOL, OWN_TEST = code_blocks(ADDING, "python")
RESULT = {"address": "orders.db.internal", "vcpus": 4, "price": 60}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a folder with the tool and the test of the README."""
    (tmp_path / "functions/server").mkdir(parents=True)
    (tmp_path / "functions/server/app.py").write_text(TOOL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_tool_asks_and_returns_as_shown(project):
    play = Player(project / "functions/server/app.py", always_replay=True)
    asked = play.call("new_database", {"name": "orders"})
    assert asked.question("size") == "How large should orders be?"
    confirm = asked.answer(size={"vcpus": 4})
    assert confirm.question("buy") == "orders costs 60 dollars a month. Create it?"
    assert confirm.answer(buy=True).structured == RESULT


def test_rounds_that_are_sent_again_create_one_database():
    names = run_blocks(TOOL)
    databases: dict[str, str] = {}  # what the provider has, by idempotency key
    requests = []

    def create_database(name: str, vcpus: int, key: str) -> str:
        requests.append(name)
        return databases.setdefault(key, f"{name}.db.internal")

    names["create_database"] = create_database
    asked = Player(names["server"]).call("new_database", {"name": "orders"})
    for answer in ({"vcpus": 2}, {"vcpus": 4}, {"vcpus": 4}):
        confirm = asked.answer(size=answer)
    assert requests == []  # before the last answer, nothing has an effect
    results = [confirm.answer(buy=True).structured for _ in range(3)]
    assert results == [RESULT] * 3
    assert (len(requests), list(databases.values())) == (3, ["orders.db.internal"])


def test_the_test_shown_passes(project):
    run_blocks(TEST)["test_a_database_is_created"]()


def test_the_own_tool_shown_passes_its_test(tmp_path):
    write({tmp_path / path: text for path, text in render("shop", "python3.13", "arm64").items()})
    [name] = re.findall(r"make new-tool NAME=(\w+) TASKS=1", read_document(ADDING))
    write(plan_tool(tmp_path, name, tasks=True))
    for path, text in (f"functions/server/{name}.py", OWN_TOOL), (f"tests/test_{name}.py", OWN_TEST):
        assert (tmp_path / path).is_file()
        (tmp_path / path).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert lint([str(tmp_path / "functions")]) == 0


pytest_plugins = ["support.example_services"]

PLAYED = [block for block in code_blocks("docs/guides/writing-tools.md", "python") if "Player(" in block]

shop = SimpleNamespace(orders=set())
server = Server("shop")


@server.tool(task="required")
def order(ctx: Context, item: str) -> str:
    ctx.run_as_task()
    ctx.elicit("sure", f"Order a {item}?", bool)
    ctx.step("order", shop.orders.add, ctx.idempotency_key("order"))
    return "sent"


@pytest.mark.usefixtures("example_services")
@pytest.mark.parametrize("shown", PLAYED, ids=[str(number) for number in range(len(PLAYED))])
def test_the_player_examples_of_writing_tools_run(shown, monkeypatch):
    monkeypatch.chdir(ROOT)
    imported = {"Path": Path, "Player": Player, "WITH_TASKS": WITH_TASKS, "crashes": crashes}
    names = run_blocks(shown, **imported, server=server, shop=shop)
    for name, test in names.items():
        if name.startswith("test_"):
            test()


def test_writing_tools_shows_a_round_a_task_and_its_crashes():
    assert len(PLAYED) == 3
