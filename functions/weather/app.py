"""What the weather is usually like somewhere, asking which place is meant when several share the name.

The answers come from `normals.json`, long-term monthly means; its `about` says how far they were checked.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp_roundtrip import Context, Server, ToolError
from pydantic import BaseModel, Field

server = Server("weather")


@dataclass(frozen=True, slots=True)
class Place:
    """A row of normals.json; the lists have twelve values, January first."""

    name: str
    country: str
    station: str
    source: str
    high_c: list[float]
    low_c: list[float]
    precipitation_mm: list[float]

    @property
    def label(self) -> str:
        return f"{self.name}, {self.country}"

    def matches(self, location: str) -> bool:
        return location.strip().casefold() in (self.name.casefold(), self.label.casefold())


NORMALS = json.loads(Path(__file__).with_name("normals.json").read_text("utf-8"))
PLACES = [Place(**row) for row in NORMALS["places"]]


class Weather(BaseModel):
    place: str
    month: int
    high_c: float = Field(description="Mean daily maximum temperature in °C")
    low_c: float = Field(description="Mean daily minimum temperature in °C")
    precipitation_mm: float = Field(description="Mean precipitation of the whole month in mm")
    source: str = Field(description="Who published the figures, for which period and station")


@server.tool(annotations={"readOnlyHint": True})
def get_weather(ctx: Context, location: str, month: Annotated[int, Field(ge=1, le=12)]) -> Weather:
    """Tell what the weather is usually like in a city in a month of the year.

    Args:
        location: A city, such as "Tokyo" or "Hyderabad, India".
        month: 1 for January to 12 for December.
    """
    places = {place.label: place for place in PLACES if place.matches(location)}
    if not places:
        known = ", ".join(sorted({place.name for place in PLACES}))
        raise ToolError(f"There are no figures for {location!r}. The cities are: {known}.")
    label = next(iter(places))
    if len(places) > 1:
        label = ctx.elicit(
            "place", f"There are {len(places)} places called {location}. Which one?", one_of(places)
        )
    return weather(places[label], month)


def one_of(labels: dict[str, Place]) -> Any:
    """A form with a single field that offers the labels."""
    return Annotated[Literal[tuple(labels)], Field(description="City and country")]


def weather(place: Place, month: int) -> Weather:
    return Weather(
        place=place.label,
        month=month,
        high_c=place.high_c[month - 1],
        low_c=place.low_c[month - 1],
        precipitation_mm=place.precipitation_mm[month - 1],
        source=f"{place.source}, {place.station}",
    )


handler = server.lambda_handler
