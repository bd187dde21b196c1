"""How people name a function."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcp_roundtrip_tools.template.function_references import find_function
from mcp_roundtrip_tools.template.model import Application, Function, TemplateError


def function(logical_id: str, name: str, folder: str) -> Function:
    return Function(name, "app.handler", Path("/project", folder), (), {}, 3, 128, logical_id=logical_id)


def application(*functions: Function) -> Application:
    by_name = {each.name: each for each in functions}
    return Application(by_name, {}, (), (), left_out={"local_java": "Java.Runtime: java21 is not Python"})


FRONT_DOOR = function("FrontDoorFunction", "local_front_door", "functions/front_door")
ORDERS = function("OrdersFunction", "local_orders", "functions/orders")
WORKER = function("OrdersWorkerFunction", "local_orders_worker", "functions/orders")
GREETER, ODD = (function(name, name, "src") for name in ("Greeter", "Odd"))
ALL = application(FRONT_DOOR, WORKER, ORDERS, GREETER, ODD)


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("OrdersFunction", ORDERS),
        ("orders", ORDERS),
        ("functions/orders", ORDERS),
        ("local_orders", ORDERS),
        ("mcp-roundtrip_orders", ORDERS),
        ("orders_worker", WORKER),
        ("my-stack_orders_worker", WORKER),
        ("arn:aws:lambda:eu-west-1:123456789012:function:my-stack_orders:live", ORDERS),
        ("front_door", FRONT_DOOR),
        ("functions/front_door/", FRONT_DOOR),
        ("/project/functions/front_door", FRONT_DOOR),
        ("Greeter", GREETER),
    ],
)
def test_a_function_has_a_logical_id_a_folder_and_a_name(reference: str, expected: Function) -> None:
    assert find_function(ALL, reference) == expected


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (None, "name a function of the template: FrontDoorFunction (front_door), OrdersWorkerFunction"),
        ("order", "no function order; it has FrontDoorFunction (front_door), "),
        ("", "no function ; it has "),
        ("/", "no function /; it has "),
        ("a_b_orders", "no function a_b_orders; it has "),
        ("src", "src is the folder of several functions: name one of Greeter, Odd"),
        ("java", "local_java does not run here: Java.Runtime: java21 is not Python"),
    ],
)
def test_other_names_get_the_reason(reference: str | None, reason: str) -> None:
    with pytest.raises(TemplateError) as refused:
        find_function(ALL, reference)
    assert reason in str(refused.value)


def test_the_only_function_needs_no_name() -> None:
    assert find_function(application(ORDERS), None) == ORDERS
