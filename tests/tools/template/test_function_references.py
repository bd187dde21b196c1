from pathlib import Path

import pytest

from mcp_roundtrip_tools.template.functions import find_function
from mcp_roundtrip_tools.template.model import Application, Function, TemplateError

SETTINGS = {"functions/orders": {"MCP_SETTINGS": ""}, "functions/b": {"MCP_AUTH_MODE": "none"}, "src": {}}
"""The variables of functions by their folders. Those in src/ are no MCP servers."""


def application(*functions: tuple[str, str, str, str]) -> Application:
    found = {
        name: Function(
            name, handler, Path("/project", folder), (), SETTINGS[folder], 3, 128, logical_id=logical_id
        )
        for logical_id, name, folder, handler in functions
    }
    return Application(found, {}, (), (), left_out={"local_java": "Java.Runtime: java21 is not Python"})


ORDERS = ("OrdersFunction", "local_orders", "functions/orders", "app.handler")
WORKER = ("OrdersWorkerFunction", "local_orders_worker", "functions/orders", "app.worker")
SECOND = ("B", "local_b", "functions/b", "app.handler")
OTHERS = [(name, name, "src", "app.handler") for name in ("Greeter", "Odd")]
ALL = application(WORKER, ORDERS, *OTHERS)


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("OrdersFunction", "local_orders"),
        ("orders", "local_orders"),
        ("functions/orders/", "local_orders"),
        ("/project/functions/orders", "local_orders"),
        ("orders_worker", "local_orders_worker"),
        ("arn:aws:lambda:us-east-1:000000000000:function:local_orders:live", "local_orders"),
        ("Greeter", "Greeter"),
    ],
)
def test_a_function_has_a_logical_id_a_folder_and_a_name(reference, name):
    assert find_function(ALL, reference).name == name


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("order", "order; it has "),
        ("", "no function ; "),
        ("src", " Greeter, Odd"),
        ("java", " here: Java.Runtime: "),
    ],
)
def test_other_names_get_the_reason(reference, reason):
    with pytest.raises(TemplateError) as refused:
        find_function(ALL, reference)
    assert reason in str(refused.value)


@pytest.mark.parametrize("others", [[], [WORKER], OTHERS])
def test_the_only_server_needs_no_name(others):
    assert find_function(application(*others, ORDERS), None).name == "local_orders"


@pytest.mark.parametrize("functions", [[OTHERS[0]], [ORDERS, SECOND]])
def test_one_of_several_servers_and_another_function_need_a_name(functions):
    with pytest.raises(TemplateError) as refused:
        find_function(application(*functions), None)
    assert all(logical_id in str(refused.value) for logical_id, *_ in functions)
