"""A stand-in for Open-Meteo's geocoding, forecast and archive APIs, with a few places and invented weather.

Source: https://open-meteo.com/en/docs, with /geocoding-api and
/historical-weather-api.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from mcp_roundtrip_testing.serving import Request, Response, json_response

PLACES = (
    ("Hyderabad", "Telangana", "India", "IN", 17.38405, 78.45636),
    ("Hyderabad", "Sindh", "Pakistan", "PK", 25.39242, 68.37366),
    ("London", "England", "United Kingdom", "GB", 51.50853, -0.12574),
    ("London", "Ontario", "Canada", "CA", 42.98339, -81.23304),
    ("New York", "New York", "United States", "US", 40.71427, -74.00597),
    ("Paris", "Île-de-France", "France", "FR", 48.85341, 2.3488),
    ("Paris", "Texas", "United States", "US", 33.66094, -95.55551),
    ("Seattle", "Washington", "United States", "US", 47.60621, -122.33207),
    ("Tokyo", "Tokyo", "Japan", "JP", 35.6895, 139.69171),
    ("Zurich", "Zurich", "Switzerland", "CH", 47.36667, 8.55),
)
"""Name, admin1, country, country code, latitude and longitude, as GeoNames has them."""

COLUMNS = ("name", "admin1", "country", "country_code", "latitude", "longitude")

CODES = (0, 2, 3, 61, 80, 1, 0)


def respond(request: Request) -> Response:
    """Answer a request for places, for a forecast or for past weather."""
    url = urlsplit(request.target)
    query = dict(parse_qsl(url.query))
    if (request.method, url.path) == ("GET", "/v1/search"):
        return json_response(200, search(query["name"], int(query.get("count", 10))))
    if (request.method, url.path) == ("GET", "/v1/forecast"):
        return json_response(200, forecast(query))
    if (request.method, url.path) == ("GET", "/v1/archive"):
        return json_response(200, archive(query))
    return json_response(404, {"error": True, "reason": "Not Found"})


def search(name: str, count: int) -> dict[str, Any]:
    """Return the places whose name begins with `name`; shorter names than three characters match exactly."""
    wanted = name.casefold()
    rows: list[dict[str, Any]] = [dict(zip(COLUMNS, row, strict=True)) for row in PLACES]
    found = [
        row
        for row in rows
        if row["name"].casefold() == wanted or (len(wanted) > 2 and row["name"].casefold().startswith(wanted))
    ]
    # The API leaves the member out where nothing was found.
    return ({"results": found[:count]} if found else {}) | {"generationtime_ms": 0.5}


def forecast(query: Mapping[str, str]) -> dict[str, Any]:
    """Return weather that depends only on the position."""
    latitude, longitude = float(query["latitude"]), float(query["longitude"])
    high = round(35 - abs(latitude) / 2, 1)
    now = datetime.now(UTC).replace(second=0, microsecond=0, tzinfo=None)
    answer: dict[str, Any] = {"latitude": latitude, "longitude": longitude, "timezone": query["timezone"]}
    if "current" in query:
        values = {"temperature_2m": high, "precipitation": 0.0, "wind_speed_10m": 9.4, "weather_code": 1}
        answer["current"] = {
            "time": now.isoformat("T", "minutes"),
            "interval": 900,
            **_only(values, query["current"]),
        }
    if "daily" in query:
        days = range(int(query.get("forecast_days", 7)))
        columns = {
            "temperature_2m_max": [round(high + day / 2, 1) for day in days],
            "temperature_2m_min": [round(high - 8 + day / 2, 1) for day in days],
            "precipitation_sum": [0.8 * day for day in days],
            "weather_code": [CODES[day % len(CODES)] for day in days],
        }
        dates = [(now + timedelta(days=day)).date().isoformat() for day in days]
        answer["daily"] = {"time": dates, **_only(columns, query["daily"])}
    return answer


def archive(query: Mapping[str, str]) -> dict[str, Any]:
    """Return past weather that depends on the latitude and on the month."""
    latitude = float(query["latitude"])
    first, last = (date.fromisoformat(query[name]) for name in ("start_date", "end_date"))
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    from_july = min((first.month - 7) % 12, (7 - first.month) % 12)
    season = from_july if latitude >= 0 else 6 - from_july
    columns = {
        "temperature_2m_mean": [round(31 - abs(latitude) / 2 - 2 * season, 1)] * len(days),
        "precipitation_sum": [0.8 * (day.day % 3) for day in days],
        "wind_speed_10m_max": [12.5] * len(days),
        "weather_code": [CODES[day.day % len(CODES)] for day in days],
    }
    daily = {"time": [day.isoformat() for day in days], **_only(columns, query["daily"])}
    return {"latitude": latitude, "longitude": float(query["longitude"]), "daily": daily}


def _only(values: Mapping[str, Any], names: str) -> dict[str, Any]:
    return {name: values[name] for name in names.split(",")}
