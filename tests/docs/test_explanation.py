import ast
import asyncio
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import ElicitResult

import mcp_roundtrip
from mcp_roundtrip_testing import Player
from mcp_roundtrip_tools.console.states import journal_rows
from support.documents import code_blocks, read_document, run_blocks

REPLAY, COMING_FROM = "docs/explanation/how-replay-works.md", "docs/explanation/coming-from.md"
RESULT = "orders.db.internal is yours."


@pytest.mark.parametrize("page", [REPLAY, "docs/guides/hooks.md", "docs/guides/shared-setup.md"])
def test_the_code_of_the_page_runs(page):
    run_blocks(*code_blocks(page, "python"))


def test_the_table_of_the_journal_shows_the_marks_of_each_round():
    play = Player(run_blocks(code_blocks(REPLAY, "python")[0])["server"])
    asked = play.call("new_database", {"name": "orders"})
    again = asked.answer(vcpus=4)
    assert again.answer(keep=True).text == RESULT
    assert asked.journal is not None
    assert again.journal is not None
    rounds = [journal_rows(asked.journal), journal_rows(again.journal, asked.journal)]
    marks = [{row["key"]: row["mark"] for row in rows} for rows in rounds]
    last = {row["key"]: "replayed" for row in rounds[1] if row["kind"] != "question"} | {"keep": "answered"}
    for key, *cells in re.findall(
        r"^\| `(\w+)` \|.*?\|.*?\| (.*?) ?\| (.*?) ?\| (.*?) ?\|$", read_document(REPLAY), re.M
    ):
        shown = [cell.strip("*") for cell in cells]
        assert shown == [*(each.get(key, "") for each in marks), last[key]], key


def test_the_model_of_the_page_is_a_form_with_every_kind_of_field():
    model = run_blocks(code_blocks("docs/guides/asking.md", "python")[0])["Consignment"]
    server = mcp_roundtrip.Server("customs")

    @server.tool
    def register(ctx: mcp_roundtrip.Context) -> None:
        ctx.elicit("form", "Which consignment?", model)

    fields = Player(server).call("register").asked["form"]["params"]["requestedSchema"]["properties"]
    kinds = {name: (each["type"], each.get("format")) for name, each in fields.items()}
    assert kinds == {
        "reference": ("string", None),
        "email": ("string", "email"),
        "packages": ("integer", None),
        "arrival": ("string", "date"),
        "insured": ("boolean", None),
        "mode": ("string", None),
        "documents": ("array", None),
        "note": ("string", None),
    }
    assert [each["title"] for each in fields["mode"]["oneOf"]] == ["By sea, four weeks", "By air, two days"]


OURS, SDK, FASTMCP = code_blocks(COMING_FROM, "python")

SHOWN_MESSAGES = ["How many CPUs has orders?", "orders.db.internal is ready. Keep it?"]


def answer_to(message: str) -> Mapping[str, Any]:
    return {"vcpus": 4} if "CPUs" in message else {"keep": True}


def test_the_tool_of_this_package_creates_one_database():
    names = run_blocks(OURS)
    play = Player(names["server"])
    asked = play.call("new_database", {"name": "orders"})
    assert asked.answer(vcpus=4).answer(keep=True).text == RESULT
    assert asked.answer(vcpus=4).answer(keep=True).text == RESULT  # both rounds, sent again
    assert list(names["created"].values()) == ["orders"]


def test_the_tool_of_the_python_sdk_creates_two_databases():
    names, messages = run_blocks(SDK), []

    async def ask(context: object, params: Any) -> ElicitResult:
        messages.append(params.message)
        return ElicitResult(action="accept", content=dict(answer_to(params.message)))

    async def call() -> Any:
        async with Client(names["server"], elicitation_callback=ask) as client:
            return await client.call_tool("new_database", {"name": "orders"})

    assert asyncio.run(call()).content[0].text == RESULT
    assert messages == SHOWN_MESSAGES
    assert names["created"] == ["orders", "orders"]


def test_the_tool_of_fastmcp_keeps_its_own_state():
    from fastmcp import Client as FastMcpClient  # importing it takes half a second in each process of tests

    names, messages = run_blocks(FASTMCP), []

    async def ask(message: str, response_type: object, params: object, context: object) -> Mapping[str, Any]:
        messages.append(message)
        return answer_to(message)

    async def call() -> Any:
        async with FastMcpClient(names["server"], elicitation_handler=ask) as client:
            return await client.call_tool("new_database", {"name": "orders"})

    assert asyncio.run(call()).content[0].text == RESULT
    assert messages == SHOWN_MESSAGES
    assert names["created"] == ["orders"]


@pytest.mark.parametrize("package", ["mcp", "fastmcp"])
def test_the_page_names_the_versions_that_run(package):
    assert version(package) in read_document(COMING_FROM).partition("## ")[0]


ATTRIBUTE = re.compile(r"(?:mcp|mcp_roundtrip|gen_ai|jsonrpc|rpc|error|network|http|db)(?:\.[a-z_]+)+")


def test_the_table_of_attributes_has_those_that_the_modules_of_traces_set():
    folder = Path(mcp_roundtrip.__file__).parent
    modules = ["observing/opentelemetry_tracer.py", "server/hooks.py", "server/spans.py"]
    texts = {
        node.value
        for name in modules
        for node in ast.walk(ast.parse((folder / name).read_text("utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    table = read_document("docs/explanation/traces.md").partition("## Attributes")[2]
    cells = "".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `"))
    assert set(re.findall(rf"`({ATTRIBUTE.pattern})`", cells)) == set(filter(ATTRIBUTE.fullmatch, texts))
    assert "`mcp_roundtrip.field.…`" in cells
