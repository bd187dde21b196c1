"""Calls of functions in other modules of the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_roundtrip_tools.lint.checking import check_file

HELPERS = """\
import time, uuid

def new_reference():
    return "R-" + uuid.uuid4().hex

def now():
    return time.time()

def constant():
    return 1
"""


def rules_of(path: Path, *lines: str) -> list[tuple[int, str]]:
    path.write_text("\n".join(["from mcp_roundtrip import Context", *lines, ""]))
    return [(finding.line, finding.rule) for finding in check_file(path)]


@pytest.mark.parametrize(
    ("statement", "called"),
    [
        ("from helpers import new_reference", "new_reference"),
        ("from helpers import new_reference as reference", "reference"),
        ("import helpers", "helpers.new_reference"),
        ("import helpers as h", "h.new_reference"),
    ],
)
def test_a_function_of_a_module_beside_it_is_followed(tmp_path: Path, statement: str, called: str) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    tool = ["def ask(ctx: Context):", f'    ctx.confirm("sure", {called}())']
    assert rules_of(tmp_path / "app.py", statement, *tool) == [(4, "MRT001")]
    same = [tool[0], '    ctx.confirm("sure", str(constant()))']
    assert rules_of(tmp_path / "app.py", "from helpers import constant", *same) == []


@pytest.mark.parametrize(
    ("statement", "called"),
    [
        ("from helpers import Orders", "Orders().reference()"),
        ("from helpers import orders", "orders.reference()"),
        ("import helpers", "helpers.Orders().reference()"),
        ("import helpers", "helpers.orders.reference()"),
        ("from helpers import RushOrders as Rush", "Rush().reference()"),
    ],
)
def test_a_method_of_a_class_of_a_module_beside_it_is_followed(
    tmp_path: Path, statement: str, called: str
) -> None:
    (tmp_path / "helpers.py").write_text(
        """\
import uuid

class Orders:
    def reference(self):
        return uuid.uuid4().hex

class RushOrders(Orders):
    pass

orders = Orders()
"""
    )
    tool = ["def ask(ctx: Context):", f'    ctx.confirm("sure", {called})']
    assert rules_of(tmp_path / "app.py", statement, *tool) == [(4, "MRT001")]


@pytest.mark.parametrize(
    "statement",
    ["from .helpers import now", "from orders.helpers import now", "from ..orders.helpers import now"],
)
def test_a_function_of_the_package_is_followed(tmp_path: Path, statement: str) -> None:
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders/__init__.py").touch()
    (tmp_path / "orders/helpers.py").write_text(HELPERS)
    tool = ["def ask(ctx: Context):", '    ctx.confirm("sure", str(now()))']
    assert rules_of(tmp_path / "orders/app.py", statement, *tool) == [(4, "MRT001")]


@pytest.mark.parametrize("content", ["def (:", "x\0", "from app import *"])
def test_an_imported_module_that_cannot_be_read_is_not_followed(tmp_path: Path, content: str) -> None:
    (tmp_path / "helpers.py").write_text(content)
    tool = ["def ask(ctx: Context):", '    ctx.confirm("sure", str(now()))']
    assert rules_of(tmp_path / "app.py", "from helpers import now", *tool) == []


def test_a_tool_of_a_server_that_another_module_creates_needs_a_docstring(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text('from mcp_roundtrip import Server\nserver = Server("shop")\n')
    (tmp_path / "other.py").write_text('from fastmcp import FastMCP\nserver = FastMCP("shop")\n')
    tool = ["@server.tool", "def ask(name: str) -> str:", "    return name", ""]
    for module, findings in (("shop", ["MRT013"]), ("other", [])):
        (tmp_path / "app.py").write_text("\n".join([f"from {module} import server", *tool]))
        assert [finding.rule for finding in check_file(tmp_path / "app.py")] == findings


def test_a_nested_model_of_a_module_beside_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(
        """\
from pydantic import BaseModel

class Address(BaseModel):
    street: str

class Order(BaseModel):
    address: Address
"""
    )
    tool = ["from models import Order", "def ask(ctx: Context):", '    ctx.elicit("order", "What?", Order)']
    assert rules_of(tmp_path / "app.py", *tool) == [(4, "MRT012")]


def test_clients_and_effects_of_a_module_beside_it_are_followed(tmp_path: Path) -> None:
    (tmp_path / "clients.py").write_text(
        """\
import boto3, requests
queue = boto3.client("sqs")

def notify():
    requests.post("https://example.com")
"""
    )
    tool = [
        "import clients",
        "from clients import notify, queue as jobs",
        "def ask(ctx: Context):",
        "    clients.notify()",
        "    notify()",
        "    clients.queue.send_message()",
        "    jobs.send_message()",
        "    jobs.receive_message()",
        '    ctx.confirm("sure", "Sure?")',
    ]
    assert rules_of(tmp_path / "app.py", *tool) == [(line, "MRT006") for line in range(5, 9)]


def test_an_async_helper_of_a_module_beside_it_has_to_be_awaited(tmp_path: Path) -> None:
    (tmp_path / "questions.py").write_text(
        "async def is_sure(ctx):\n    return await ctx.confirm('a', 'b')\n"
    )
    tool = [
        "from mcp_roundtrip import AsyncContext",
        "import questions",
        "from questions import is_sure",
        "async def ask(ctx: AsyncContext):",
        "    if is_sure(ctx):",
        "        questions.is_sure(ctx)",
        "    return await is_sure(ctx)",
    ]
    assert rules_of(tmp_path / "app.py", *tool) == [(6, "MRT003"), (7, "MRT003")]
