"""A client of Open-Meteo's geocoding, forecast and archive APIs (https://open-meteo.com/en/docs)."""

import json
import os
from calendar import monthrange
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

TIMEOUT_S = 5
MAX_PLACES = 10

CONDITIONS = {
    0: "clear sky",
    1: "mainly clear",
    2: "partly cloudy",
    3: "overcast",
    **dict.fromkeys((45, 48), "fog"),
    **dict.fromkeys((51, 53, 55, 56, 57), "drizzle"),
    **dict.fromkeys((61, 63, 65, 66, 67, 80, 81, 82), "rain"),
    **dict.fromkeys((71, 73, 75, 77, 85, 86), "snow"),
    **dict.fromkeys((95, 96, 99), "thunderstorm"),
}
"""Descriptions of the WMO weather codes that the API uses."""


class Unavailable(Exception):
    """The API timed out, is overloaded or failed; a later attempt may succeed."""


@dataclass(frozen=True, slots=True)
class Place:
    """A result of the geocoding API."""

    name: str
    region: str
    country: str
    latitude: float
    longitude: float

    @property
    def label(self) -> str:
        parts = dict.fromkeys(
            (self.name, self.region, self.country)
        )  # "Tokyo, Tokyo, Japan" is "Tokyo, Japan"
        return ", ".join(part for part in parts if part)


def search(location: str) -> dict[str, Place]:
    """Return the places that a text such as "Paris" or "Paris, Texas" means, by label, in the API's order.

    Without a place of exactly that name, return similar ones. Raises Unavailable.
    """
    name, *qualifiers = (part.strip().casefold() for part in location.split(","))
    if not name:
        return {}
    url = os.environ.get("GEOCODING_API_URL", "https://geocoding-api.open-meteo.com")
    results = _get(f"{url}/v1/search", name=name, count=MAX_PLACES).get("results", [])
    exact = [row for row in results if row["name"].casefold() == name] or results
    qualified = [row for row in exact if _names(row).issuperset(qualifiers)] or exact
    places: dict[str, Place] = {}
    for row in qualified:
        region, country = row.get("admin1", ""), row.get("country", "")
        place = Place(row["name"], region, country, row["latitude"], row["longitude"])
        places.setdefault(place.label, place)
    return places


def current(place: Place) -> dict[str, Any]:
    """Return the `current` object of the forecast API. Raises Unavailable."""
    fields = "temperature_2m,precipitation,wind_speed_10m,weather_code"
    found: dict[str, Any] = _forecast(place, current=fields)["current"]
    return found


def daily(place: Place, days: int) -> list[dict[str, Any]]:
    """Return the `daily` object of the forecast API as one object for each day. Raises Unavailable."""
    fields = "temperature_2m_max,temperature_2m_min,precipitation_sum,weather_code"
    return list(_rows(_forecast(place, daily=fields, forecast_days=days)["daily"]))


def days_of_month(place: Place, year: int, month: int) -> list[dict[str, Any]]:
    """Return the `daily` object of the archive API for a month (1 to 12), as `daily` does.

    Raises Unavailable.
    """
    url = os.environ.get("ARCHIVE_API_URL", "https://archive-api.open-meteo.com")
    first, last = f"{year}-{month:02}-01", f"{year}-{month:02}-{monthrange(year, month)[1]}"
    fields = "temperature_2m_mean,precipitation_sum,wind_speed_10m_max,weather_code"
    period = {"start_date": first, "end_date": last, "timezone": "auto"}
    return list(_rows(_get(f"{url}/v1/archive", **_position(place), **period, daily=fields)["daily"]))


def _rows(columns: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def _names(row: dict[str, Any]) -> set[str]:
    return {str(row.get(key, "")).casefold() for key in ("admin1", "country", "country_code")}


def _forecast(place: Place, **query: str | int) -> Any:
    url = os.environ.get("WEATHER_API_URL", "https://api.open-meteo.com")
    return _get(f"{url}/v1/forecast", **_position(place), timezone="auto", **query)


def _position(place: Place) -> dict[str, float]:
    return {"latitude": place.latitude, "longitude": place.longitude}


def _get(url: str, **query: str | float) -> Any:
    from urllib.error import HTTPError
    from urllib.request import urlopen  # HTTP and TLS take 40 ms to import; lists need neither

    try:
        # The URL is the operator's setting.
        with urlopen(f"{url}?{urlencode(query)}", timeout=TIMEOUT_S) as response:  # noqa: S310
            return json.load(response)
    except HTTPError as error:
        error.close()
        if error.code != 429 and error.code < 500:
            raise
        raise Unavailable(f"status {error.code}") from None
    except OSError as error:
        raise Unavailable(str(error)) from error
