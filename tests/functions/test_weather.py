import json
from typing import Any
from urllib.parse import quote

import pytest

from mcp_roundtrip_testing import Player
from mcp_roundtrip_tools.run.http.messages import Request, Response
from support.example_services import stand_in
from support.project import FUNCTIONS

APP = FUNCTIONS / "weather/app.py"

TOKYO, HYDERABAD = {"location": "Tokyo"}, {"location": "Hyderabad"}
INDIA, PAKISTAN = "Hyderabad, Telangana, India", "Hyderabad, Sindh, Pakistan"


@pytest.fixture
def open_meteo():
    with stand_in("open_meteo", "GEOCODING_API_URL", "WEATHER_API_URL", "ARCHIVE_API_URL") as service:
        yield service


@pytest.fixture
def play(open_meteo):
    return Player(APP, always_replay=True)


def test_an_unambiguous_name_needs_no_question(play):
    weather = play.call("get_weather", TOKYO).structured
    assert (weather["place"], weather["conditions"]) == ("Tokyo, Japan", "mainly clear")
    assert (weather["temperature_c"], weather["precipitation_mm"], weather["wind_kmh"]) == (17.2, 0, 9.4)
    assert "Open-Meteo" in weather["source"]


def test_a_month_is_that_of_last_year(play, open_meteo):
    asked = play.call("get_weather", {**HYDERABAD, "month": 7})
    weather = asked.answer(place=INDIA).structured
    assert weather["time"].endswith("-07")
    assert (weather["temperature_c"], weather["precipitation_mm"]) == (22.3, 24.8)
    assert weather["conditions"] == "rain"
    assert open_meteo.paths[-1] == "/v1/archive"


def test_an_ambiguous_name_is_asked(play):
    asked = play.call("get_weather", HYDERABAD)
    assert asked.asked["place"]["params"]["requestedSchema"]["properties"]["value"] == {
        "type": "string",
        "enum": [INDIA, PAKISTAN],
        "description": "Place",
    }
    assert asked.answer(place=PAKISTAN).structured["temperature_c"] == 22.3
    assert asked.answer(place=INDIA).structured["temperature_c"] == 26.3


@pytest.mark.parametrize(
    ("location", "label"),
    [
        ("hyderabad, india", INDIA),
        (" Hyderabad , IN", INDIA),
        ("HYDERABAD, SINDH, PAKISTAN", PAKISTAN),
        ("New York", "New York, United States"),
        ("Paris, Texas", "Paris, Texas, United States"),
        ("Seattle, WA", "Seattle, Washington, United States"),
        ("Zür", None),
        ("Zuri", "Zurich, Switzerland"),
    ],
)
def test_a_region_or_country_selects_a_place_and_an_unknown_one_is_ignored(play, location, label):
    answer = play.call("get_weather", {"location": location})
    assert answer.failed if label is None else answer.structured["place"] == label


def test_a_client_without_elicitation_is_asked_through_the_model(open_meteo):
    play = Player(APP, capabilities={}, ports={"tasks": None})
    assert INDIA in play.call("get_weather", HYDERABAD).text
    answers = {"input_responses": {"place": INDIA}}
    assert play.call("get_weather", {**HYDERABAD, **answers}).structured["place"] == INDIA
    assert not play.call("get_weather", TOKYO).failed


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        *(("get_weather", {**TOKYO, "month": month}) for month in (0, 13, "July")),
        *(("get_weather", {"location": location}) for location in (1, "Atlantis")),
        *(("compare_weather", {"locations": ["Tokyo"] * count}) for count in (1, 6)),
    ],
)
def test_an_unknown_place_and_a_number_out_of_range_are_a_tool_error(play, tool, arguments):
    assert play.call(tool, arguments).failed


@pytest.mark.parametrize(
    ("status", "times", "failed", "said"),
    [
        (429, 2, False, INDIA),
        (500, 2, False, INDIA),
        (503, 2, False, INDIA),
        (503, 3, True, "weather"),
    ],
)
def test_a_short_outage_is_retried_and_a_long_one_is_a_tool_error(open_meteo, status, times, failed, said):
    asked = Player(APP).call("get_weather", HYDERABAD)
    search = open_meteo.respond(Request("GET", "/v1/search?name=hyderabad", ()))
    open_meteo.failures = [search, *[Response(status)] * times]
    done = asked.answer(place=INDIA)
    assert open_meteo.paths[-3:] == ["/v1/forecast"] * 3
    assert done.failed is failed
    assert said in done.text


def test_an_outage_of_the_search_is_a_tool_error(open_meteo):
    open_meteo.failures = [Response(503)]
    assert "unavailable" in Player(APP).call("get_weather", TOKYO).text


def test_the_branches_of_a_comparison_ask_in_one_round(play, open_meteo):
    asked = play.call("compare_weather", {"locations": ["Hyderabad", "Tokyo", "Paris"]})
    assert asked.asked.keys() == {"city 1/place", "city 3/place"}
    requests = open_meteo.paths.count("/v1/forecast")
    paris = "Paris, Île-de-France, France"
    done = asked.answer(**{"city 1/place": PAKISTAN, "city 3/place": paris}).structured
    assert [each["place"] for each in done["cities"]] == [PAKISTAN, "Tokyo, Japan", paris]
    assert requests == 1, "Tokyo needs no answer"


def uri(place: str) -> str:
    return f"weather://forecast/{quote(place, safe='')}"


def test_the_forecast_of_a_place_is_a_publicly_cacheable_resource(play):
    result = play.read(uri(PAKISTAN)).result
    [contents] = result["contents"]
    assert (contents["uri"], contents["mimeType"]) == (uri(PAKISTAN), "application/json")
    forecast = json.loads(contents["text"])
    assert (forecast["place"], len(forecast["days"])) == (PAKISTAN, 7)
    assert forecast["days"][0] | {"date": ""} == {
        "date": "",
        "conditions": "clear sky",
        "high_c": 22.3,
        "low_c": 14.3,
        "precipitation_mm": 0.0,
    }
    assert (result["ttlMs"], result["cacheScope"]) == (3_600_000, "public")


@pytest.mark.parametrize("place", ["Hyderabad", "tokyo, japan", "Atlantis", ""])
def test_an_inexact_place_has_no_resource(play, place):
    refused = play.read(uri(place)).error
    assert (refused["code"], refused["data"]) == (-32602, {"uri": uri(place)})


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("hyd", [INDIA, PAKISTAN]), ("HYDERABAD, P", [INDIA, PAKISTAN]), ("Atlantis", []), ("", [])],
)
def test_places_are_completed(play, typed, offered):
    template = {"type": "ref/resource", "uri": "weather://forecast/{place}"}
    asked: dict[str, Any] = {"ref": template, "argument": {"name": "place", "value": typed}}
    assert play.request("completion/complete", **asked)["result"]["completion"]["values"] == offered
