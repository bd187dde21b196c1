"""How a call is asked, and how it continues: the tables, which lists and calls share."""

from itertools import product

import pytest

from mcp_roundtrip.server.plan import (
    ClientAbilities,
    Plan,
    carrier_of_unfinished,
    plan_call,
    presenter_of_repeated,
)

ALL = ("app", "page", "model", "default")
CLAUDE_CODE = ClientAbilities(forms=True, urls=True, apps=False, state="follows", stores_calls=True)
CLAUDE_AI = ClientAbilities(forms=False, urls=False, apps=True, state="fails", stores_calls=True)
NOTHING = ClientAbilities(forms=False, urls=False, apps=False, state="may_follow", stores_calls=True)
FORMS = ClientAbilities(forms=True, urls=False, apps=True, state="follows", stores_calls=True)
ANONYMOUS = ClientAbilities(forms=False, urls=False, apps=False, state="may_follow", stores_calls=False)
CLIENTS = [
    ClientAbilities(*facts)
    for facts in product(
        (True, False), (True, False), (True, False), ("follows", "may_follow", "fails"), (True, False)
    )
]


@pytest.mark.parametrize(
    ("client", "fallbacks", "parks"),
    [
        (CLAUDE_CODE, ("default",), False),
        (CLAUDE_AI, ("app", "page", "model", "default"), True),
        (NOTHING, ("page", "model", "default"), True),
        (FORMS, ("app", "page", "default"), True),
        (ANONYMOUS, ("model", "default"), False),
    ],
)
def test_a_tool_with_all_fallbacks_uses_those_that_carry_a_question_of_the_client(client, fallbacks, parks):
    plan = plan_call(client, ALL, asks=True)
    assert (plan.fallbacks, plan.parks) == (fallbacks, parks)


@pytest.mark.parametrize("client", CLIENTS)
def test_the_order_of_the_author_stays_and_a_tool_that_asks_nothing_has_no_fallback(client):
    backwards = plan_call(client, ALL[::-1], asks=True)
    assert backwards.fallbacks == plan_call(client, ALL, asks=True).fallbacks[::-1]
    assert plan_call(client, ALL, asks=False) == Plan((), parks=False, state=client.state)


@pytest.mark.parametrize(
    ("state", "parks", "in_app", "task", "way"),
    [
        ("follows", True, True, True, "state"),
        ("follows", True, False, True, "state"),
        ("may_follow", True, False, True, "task"),
        ("may_follow", True, False, False, "parked"),
        ("may_follow", False, False, False, "state"),
        ("fails", True, False, True, "task"),
        ("fails", True, False, False, "parked"),
        ("fails", False, False, False, None),
    ],
)
def test_a_call_that_is_out_of_time_continues_in_the_first_way_that_is_possible(
    state, parks, in_app, task, way
):
    plan = Plan((), parks, state)
    assert carrier_of_unfinished(plan, is_in_app=in_app, may_start_task=task) == way


@pytest.mark.parametrize(
    ("fallbacks", "is_for_model", "shows_requests", "presenter"),
    [
        (ALL, True, True, "model"),
        (("page",), True, False, "page"),  # another client asked its model
        (ALL, False, True, "client"),
        (ALL, False, False, "app"),
        (("page", "app"), False, False, "page"),
        (("model", "default"), False, False, "page"),  # another client asked on the page
    ],
)
def test_open_questions_are_asked_in_the_best_way_of_the_client_that_makes_the_call_again(
    fallbacks, is_for_model, shows_requests, presenter
):
    plan = Plan(fallbacks, parks=True, state="follows")
    found = presenter_of_repeated(plan, is_for_model=is_for_model, shows_requests=shows_requests)
    assert found == presenter
