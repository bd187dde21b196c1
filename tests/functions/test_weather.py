import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip_testing import CANCEL, DECLINE, Player, load_module
from support.functions import FUNCTIONS

APP = FUNCTIONS / "weather/app.py"
PLACES = load_module(FUNCTIONS / "weather/places.py").PLACES


@pytest.fixture
def play() -> Player:
    return Player(APP, always_replay=True)


def test_a_name_that_one_place_has_is_answered_at_once(play: Player) -> None:
    weather = play.call("get_weather", {"location": "Tokyo", "month": 1}).structured
    assert weather["place"] == "Tokyo, Japan"
    assert (weather["high_c"], weather["low_c"], weather["precipitation_mm"]) == (9.6, 0.9, 52)


def test_a_name_that_several_places_share_is_asked_about(play: Player) -> None:
    asked = play.call("get_weather", {"location": "Hyderabad", "month": 7})
    assert asked.asked["place"]["params"]["requestedSchema"]["properties"]["value"] == {
        "type": "string",
        "enum": ["Hyderabad, India", "Hyderabad, Pakistan"],
        "description": "City and country",
    }
    assert asked.answer(place="Hyderabad, Pakistan").structured["high_c"] == 37.3
    assert asked.answer(place="Hyderabad, India").structured["high_c"] == 31


@pytest.mark.parametrize("location", ["hyderabad, india", " Hyderabad, India ", "HYDERABAD, INDIA"])
def test_city_and_country_together_need_no_question(play: Player, location: str) -> None:
    weather = play.call("get_weather", {"location": location, "month": 7}).structured
    assert weather["place"] == "Hyderabad, India"


def test_a_place_that_was_not_offered_is_asked_again(play: Player) -> None:
    asked = play.call("get_weather", {"location": "Hyderabad", "month": 7}, place="Tokyo, Japan")
    assert asked.asked.keys() == {"place"}
    assert asked.answer(place="Hyderabad, India").structured["month"] == 7


@pytest.mark.parametrize("refusal", [DECLINE, CANCEL])
def test_a_user_who_does_not_answer_ends_the_call_in_a_tool_error(play: Player, refusal: object) -> None:
    assert play.call("get_weather", {"location": "Hyderabad", "month": 7}, place=refusal).failed


def test_a_client_without_elicitation_is_told_what_is_missing_only_if_a_question_comes_up() -> None:
    play = Player(APP, capabilities={})
    asked = play.call("get_weather", {"location": "Hyderabad", "month": 7})
    assert asked.error["code"] == -32021
    assert asked.error["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}
    assert not play.call("get_weather", {"location": "Tokyo", "month": 7}).failed


def test_an_unknown_city_gets_an_error_that_names_the_known_ones(play: Player) -> None:
    answer = play.call("get_weather", {"location": "Atlantis", "month": 7})
    assert answer.failed
    assert all(place.name in answer.text for place in PLACES)


@pytest.mark.parametrize(
    "arguments",
    [
        {"location": "Tokyo"},
        {"month": 1},
        {"location": "Tokyo", "month": 0},
        {"location": "Tokyo", "month": 13},
        {"location": 1, "month": 1},
        {"location": "Tokyo", "month": 1, "day": 1},
    ],
)
def test_arguments_that_do_not_fit_are_a_tool_error(play: Player, arguments: dict[str, object]) -> None:
    assert play.call("get_weather", arguments).failed


@given(st.sampled_from(PLACES), st.integers(1, 12))
def test_every_figure_can_be_asked_for(place: object, month: int) -> None:
    label = place.label  # type: ignore[attr-defined]  # a class of the loaded module
    weather = Player(APP).call("get_weather", {"location": label, "month": month}).structured
    assert weather["place"] == label
    assert weather["source"]
    assert -10 <= weather["low_c"] < weather["high_c"] <= 45
    assert 0 <= weather["precipitation_mm"] <= 500


def test_every_place_has_twelve_months_and_a_name_of_its_own() -> None:
    assert len({place.label for place in PLACES}) == len(PLACES)
    for place in PLACES:
        assert {len(place.high_c), len(place.low_c), len(place.precipitation_mm)} == {12}


def uri(place: str, month: object) -> str:
    return f"weather://normals/{quote(place, safe='')}/{month}"


def contents(play: Player, of: str) -> Any:
    [held] = play.read(of).contents
    assert (held["uri"], held["mimeType"]) == (of, "application/json")
    return json.loads(held["text"])


def test_the_places_can_be_read(play: Player) -> None:
    assert [row["place"] for row in contents(play, "weather://places")] == [place.label for place in PLACES]


@given(st.sampled_from(PLACES), st.integers(1, 12))
def test_the_resource_of_a_place_and_a_month_is_what_the_tool_tells(place: Any, month: int) -> None:
    play = Player(APP)
    told = play.call("get_weather", {"location": place.label, "month": month}).structured
    assert contents(play, uri(place.label, month)) == told


@pytest.mark.parametrize("of", ["weather://places", uri("Tokyo, Japan", 7)])
def test_what_never_changes_may_be_kept_by_everybody(play: Player, of: str) -> None:
    result = play.read(of).result
    assert (result["ttlMs"], result["cacheScope"]) == (86_400_000, "public")


@pytest.mark.parametrize(
    ("place", "month"),
    [
        ("Hyderabad", 7),
        ("Tokyo", 7),
        ("tokyo, japan", 7),
        ("Atlantis", 7),
        ("", 7),
        ("Tokyo, Japan", 0),
        ("Tokyo, Japan", 13),
        ("Tokyo, Japan", "July"),
    ],
)
def test_a_place_or_a_month_without_figures_has_no_resource(play: Player, place: str, month: object) -> None:
    refused = play.read(uri(place, month)).error
    assert (refused["code"], refused["data"]) == (-32602, {"uri": uri(place, month)})


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("hyd", ["Hyderabad, India", "Hyderabad, Pakistan"]),
        ("HYDERABAD, P", ["Hyderabad, Pakistan"]),
        ("Atlantis", []),
        ("", sorted(place.label for place in PLACES)),
    ],
)
def test_places_complete_themselves(play: Player, typed: str, offered: list[str]) -> None:
    template = {"type": "ref/resource", "uri": "weather://normals/{place}/{month}"}
    asked = {"ref": template, "argument": {"name": "place", "value": typed}}
    assert play.request("completion/complete", **asked)["result"]["completion"]["values"] == offered
