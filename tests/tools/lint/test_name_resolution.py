import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from mcp_roundtrip_tools.lint.checking import check_file
from support.skips import NEWER_PYTHON

HELPERS = """
    import time, uuid
    import boto3, requests
    from mcp_roundtrip import Context
    from pydantic import BaseModel

    queue = boto3.client("sqs")

    def now():
        return time.time()

    def constant():
        return 1

    def notify():
        requests.post("https://example.com")

    async def is_sure(ctx):
        return await ctx.confirm("a", "b")

    class Orders:
        def reference(self):
            return uuid.uuid4().hex

    class RushOrders(Orders):
        pass

    class Approval:
        def __init__(self, ctx: Context):
            self.ctx = ctx
        def run(self):
            notify()
            return self.ctx.confirm("a", "b")

    class Address(BaseModel):
        street: str

    class Order(BaseModel):
        address: Address

    orders = Orders()
    shown_now = now
    """


def rules_of(path: Path, text: str, **modules: str) -> list[str]:
    """Write a module and its neighbours; return the rules that report its lines, with the lines."""
    for name, content in modules.items():
        path.with_name(f"{name}.py").write_text(dedent(content))
    path.write_text(f"from mcp_roundtrip import AsyncContext, Context\n{dedent(text)}")
    lines = path.read_text().splitlines()
    return [f"{finding.rule} {lines[finding.line - 1].strip()}" for finding in check_file(path)]


ASKED = "def ask(ctx: Context):\n    ctx.confirm('sure', {})\n"

FOLLOWED = {
    "from helpers import now": "str(now())",
    "from helpers import now as moment": "str(moment())",
    "import helpers": "str(helpers.now())",
    "import helpers as h": "str(h.now())",
    "from helpers import Orders": "Orders().reference()",
    "from helpers import orders": "orders.reference()",
    "from helpers import RushOrders as Rush": "Rush().reference()",
    "import helpers as rush": "rush.RushOrders().reference()",
    "import helpers as made": "made.orders.reference()",
    "from helpers import shown_now": "str(shown_now())",
}


@pytest.mark.parametrize(("statement", "called"), FOLLOWED.items())
def test_a_function_or_method_of_a_module_beside_it_is_followed(tmp_path, statement, called):
    text = f"{statement}\n{ASKED.format(called)}"
    assert rules_of(tmp_path / "app.py", text, helpers=HELPERS) == [f"MRT001 ctx.confirm('sure', {called})"]


UNREADABLE = ("def (:", "x\0", "from app import *", "import app\nnow = app.ask")


@pytest.mark.parametrize(
    ("name", "content"), [("constant", HELPERS), *(("now", content) for content in UNREADABLE)]
)
def test_a_function_that_returns_the_same_or_cannot_be_read_is_not_reported(tmp_path, name, content):
    text = f"from helpers import {name}\n{ASKED.format(f'str({name}())')}"
    assert rules_of(tmp_path / "app.py", text, helpers=content) == []


@pytest.mark.parametrize(
    "statement",
    ["from .helpers import now", "from orders.helpers import now", "from ..orders.helpers import now"],
)
def test_a_function_of_the_package_is_followed(tmp_path, statement):
    (tmp_path / "orders").mkdir()
    text = f"{statement}\n{ASKED.format('str(now())')}"
    found = rules_of(tmp_path / "orders/app.py", text, helpers=HELPERS, __init__="")
    assert found == ["MRT001 ctx.confirm('sure', str(now()))"]


def test_a_function_that_another_module_passes_on_is_followed(tmp_path):
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/__init__.py").write_text("from .orders import created as now")
    (tmp_path / "shop/orders.py").write_text("import time\ndef created():\n    return time.time()")
    text = f"from shop import now\n{ASKED.format('str(now())')}"
    assert rules_of(tmp_path / "app.py", text) == ["MRT001 ctx.confirm('sure', str(now()))"]


def test_a_context_that_another_module_passes_on_is_known(tmp_path):
    text = "from helpers import Asking\ndef ask(ctx: Asking):\n    ctx.elicit('names', 'Which?', list[str])"
    found = rules_of(tmp_path / "app.py", text, helpers="from mcp_roundtrip import Context as Asking")
    assert found == ["MRT012 ctx.elicit('names', 'Which?', list[str])"]


@pytest.mark.skipif(sys.version_info < (3, 12), reason=f"{NEWER_PYTHON}: the type statement")
def test_a_type_statement_is_followed(tmp_path):
    text = "type Names = list[str]\ndef ask(ctx: Context):\n    ctx.elicit('names', 'Which?', Names)"
    assert rules_of(tmp_path / "app.py", text) == ["MRT012 ctx.elicit('names', 'Which?', Names)"]


TOOLS: Mapping[str, tuple[str, list[str]]] = {
    "a nested model": (
        """
        from helpers import Order
        def ask(ctx: Context):
            ctx.elicit("order", "What?", Order)
        """,
        ['MRT012 ctx.elicit("order", "What?", Order)'],
    ),
    "clients and effects": (
        """
        import helpers
        from helpers import notify, queue as jobs
        def ask(ctx: Context):
            notify()
            helpers.queue.send_message()
            jobs.send_message()
            jobs.receive_message()
            ctx.confirm("sure", "Sure?")
        """,
        ["MRT006 notify()", "MRT006 helpers.queue.send_message()", "MRT006 jobs.send_message()"],
    ),
    "the effect of an object that keeps the context, which is reported there": (
        """
        from helpers import Approval
        def ask(ctx: Context):
            Approval(ctx).run()
            ctx.confirm("sure", "Sure?")
        """,
        [],
    ),
    "a missing await": (
        """
        import helpers
        from helpers import is_sure
        async def ask(ctx: AsyncContext):
            if is_sure(ctx):
                helpers.is_sure(ctx)
            return await is_sure(ctx)
        """,
        ["MRT003 if is_sure(ctx):", "MRT003 helpers.is_sure(ctx)"],
    ),
}


@pytest.mark.parametrize(("text", "expected"), TOOLS.values(), ids=TOOLS)
def test_what_a_module_beside_it_defines_is_known(tmp_path, text, expected):
    assert rules_of(tmp_path / "app.py", text, helpers=HELPERS) == expected


@pytest.mark.parametrize(
    ("module", "made_of", "rules"), [("mcp_roundtrip", "Server", ["MRT013"]), ("fastmcp", "FastMCP", [])]
)
def test_a_tool_of_a_server_that_another_module_creates_needs_a_docstring(tmp_path, module, made_of, rules):
    (tmp_path / "shop.py").write_text(f'from {module} import {made_of}\nserver = {made_of}("shop")\n')
    tool = "from shop import server\n@server.tool\ndef ask(name: str) -> str:\n    return name\n"
    (tmp_path / "app.py").write_text(tool)
    assert [finding.rule for finding in check_file(tmp_path / "app.py")] == rules
