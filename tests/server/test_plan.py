"""How a call is asked, and how it continues: the tables, which lists and calls share."""

import pytest

from mcp_roundtrip.server.plan import Plan, presenter_of_repeated

ALL = ("app", "page", "model", "default")


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
