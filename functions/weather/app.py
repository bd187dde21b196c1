"""Report the weather in a place, and ask which place is meant when several share the name.

The data comes from Open-Meteo. If no form and no link can reach the user, the model asks.
"""

import asyncio
from collections import Counter
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field

import open_meteo
from mcp_roundtrip import AsyncContext, Context, Elicit, ResourceNotFound, Retry, Server, ToolError, one_of
from open_meteo import CONDITIONS, Place

server = Server("weather")

RETRY = Retry(attempts=3, delay_ms=300, on=(open_meteo.Unavailable,))

FORECAST = "weather://forecast/{place}"
FORECAST_DAYS = 7
FORECAST_TTL_MS = 3_600_000

SOURCE = "Weather data by Open-Meteo.com (CC BY 4.0)"

Month = Annotated[int, Field(ge=1, le=12)]

Locations = Annotated[list[str], Field(min_length=2, max_length=5)]


class Weather(BaseModel):
    place: str
    time: str = Field(description="Local time of the measurement, or the month")
    conditions: str
    temperature_c: float
    precipitation_mm: float
    wind_kmh: float
    source: str = SOURCE


class Comparison(BaseModel):
    cities: list[Weather] = Field(description="In the order of the locations")


class Day(BaseModel):
    date: str
    conditions: str
    high_c: float
    low_c: float
    precipitation_mm: float


class Forecast(BaseModel):
    place: str
    days: list[Day]
    source: str = SOURCE


@server.tool(annotations={"readOnlyHint": True}, channels=("app", "page", "model"))
def get_weather(ctx: Context, location: str, month: Month | None = None) -> Weather:
    """Get the current weather in a city, or what it was like in a month of last year.

    Args:
        location: A city, such as "Tokyo" or "Paris, Texas".
        month: 1 for January to 12 for December; without it, the weather is the current one.
    """
    places = find(location)
    label = next(iter(places)) if len(places) == 1 else ctx.ask(which(location, places))[0]
    # A step keeps its result, so that later rounds need no second request; Retry bridges short outages.
    report: Weather = ctx.step("weather", weather, places[label], month, retry=RETRY)
    return report


@server.tool(annotations={"readOnlyHint": True}, channels=("app", "page", "model"))
async def compare_weather(ctx: AsyncContext, locations: Locations) -> Comparison:
    """Compare the current weather in several cities.

    Args:
        locations: Two to five cities, such as "Tokyo" or "Paris, Texas".
    """
    # The branches ask their questions in the same round. Their names become part of the keys.
    branches = {f"city {number}": partial(weather_in, city) for number, city in enumerate(locations, 1)}
    return Comparison(cities=list((await ctx.gather(branches)).values()))


async def weather_in(location: str, ctx: AsyncContext) -> Weather:
    """Get the current weather in one of the cities."""
    places = await asyncio.to_thread(find, location)
    label = next(iter(places)) if len(places) == 1 else (await ctx.ask(which(location, places)))[0]

    async def fetch() -> Weather:
        return await asyncio.to_thread(weather, places[label])

    report: Weather = await ctx.step("weather", fetch, retry=RETRY)
    return report


def find(location: str) -> dict[str, Place]:
    """Return the places of that name by label. Raises ToolError where there are none."""
    try:
        places = open_meteo.search(location)
    except open_meteo.Unavailable:
        raise ToolError("The weather service is unavailable. Try again in a minute.") from None
    if not places:
        raise ToolError(f"No place is called {location[:80]!r}. Check the spelling, or name a larger city.")
    return places


def which(location: str, places: dict[str, Place]) -> Elicit[str]:
    """Ask which of the places is meant."""
    message = f"There are {len(places)} places called {location}. Which one?"
    return Elicit("place", message, one_of(places, description="Place"))


def weather(place: Place, month: int | None = None) -> Weather:
    """Request the current weather, or that of a month of last year. Raises Unavailable."""
    if month is not None:
        return weather_of_month(place, month)
    now = open_meteo.current(place)
    return Weather(
        place=place.label,
        time=now["time"],
        conditions=CONDITIONS.get(now["weather_code"], "unknown"),
        temperature_c=now["temperature_2m"],
        precipitation_mm=now["precipitation"],
        wind_kmh=now["wind_speed_10m"],
    )


def weather_of_month(place: Place, month: int) -> Weather:
    """Request the weather of a month of last year: means, the sum of the rain, the most frequent conditions.

    Raises Unavailable.
    """
    year = datetime.now(UTC).year - 1
    days = open_meteo.days_of_month(place, year, month)
    codes = Counter(CONDITIONS.get(day["weather_code"], "unknown") for day in days)
    return Weather(
        place=place.label,
        time=f"{year}-{month:02}",
        conditions=codes.most_common(1)[0][0],
        temperature_c=round(sum(day["temperature_2m_mean"] for day in days) / len(days), 1),
        precipitation_mm=round(sum(day["precipitation_sum"] for day in days), 1),
        wind_kmh=round(sum(day["wind_speed_10m_max"] for day in days) / len(days), 1),
    )


@server.resource(
    FORECAST,
    title="Forecast",
    mime_type="application/json",
    ttl_ms=FORECAST_TTL_MS,
    cache_scope="public",
)
def forecast(place: str) -> Forecast:
    """The forecast for the next seven days in a place, such as "Tokyo, Japan"."""
    found = open_meteo.search(place).get(place)
    if found is None:
        raise ResourceNotFound
    days = [
        Day(
            date=day["time"],
            conditions=CONDITIONS.get(day["weather_code"], "unknown"),
            high_c=day["temperature_2m_max"],
            low_c=day["temperature_2m_min"],
            precipitation_mm=day["precipitation_sum"],
        )
        for day in open_meteo.daily(found, FORECAST_DAYS)
    ]
    return Forecast(place=place, days=days)


@server.completion(FORECAST, "place")
def complete_place(value: str) -> list[str]:
    return list(open_meteo.search(value))


server.skills(Path(__file__).with_name("skills"))

handler = server.lambda_handler
