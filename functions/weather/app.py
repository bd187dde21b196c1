"""What the weather is usually like somewhere, asking which place is meant when several share the name.

Where the client cannot ask (those before 2026-07-28), its model does. The same figures are resources, whose
URIs say exactly which place is meant.
"""

from typing import Annotated

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, ResourceNotFound, Server, ToolError, one_of
from places import PLACES, Place, find, labels, names

server = Server("weather")

NORMALS = "weather://normals/{place}/{month}"

DAY_MS = 86_400_000
"""How long clients may keep what they have read: the normals of a period do not change."""

Month = Annotated[int, Field(ge=1, le=12)]


class Weather(BaseModel):
    place: str
    month: int
    high_c: float = Field(description="Mean daily maximum temperature in °C")
    low_c: float = Field(description="Mean daily minimum temperature in °C")
    precipitation_mm: float = Field(description="Mean precipitation of the whole month in mm")
    source: str = Field(description="Who published the figures, for which period and station")

    @classmethod
    def usual(cls, place: Place, month: int) -> "Weather":
        """The normals of a place in a month, 1 to 12."""
        return cls(
            place=place.label,
            month=month,
            high_c=place.high_c[month - 1],
            low_c=place.low_c[month - 1],
            precipitation_mm=place.precipitation_mm[month - 1],
            source=f"{place.source}, {place.station}",
        )


@server.tool(annotations={"readOnlyHint": True}, legacy_questions="model")
def get_weather(ctx: Context, location: str, month: Month) -> Weather:
    """Tell what the weather is usually like in a city in a month of the year.

    Args:
        location: A city, such as "Tokyo" or "Hyderabad, India".
        month: 1 for January to 12 for December.
    """
    places = find(location)
    if not places:
        raise ToolError(f"There are no figures for {location[:80]!r}. The cities are: {names()}.")
    label = next(iter(places))
    if len(places) > 1:
        which = one_of(places, description="City and country")
        label = ctx.elicit("place", f"There are {len(places)} places called {location}. Which one?", which)
    return Weather.usual(places[label], month)


@server.resource(
    "weather://places",
    name="places",
    title="Places",
    mime_type="application/json",
    ttl_ms=DAY_MS,
    cache_scope="public",
)
def known_places() -> list[dict[str, str]]:
    """The places there are figures for, with who published them."""
    return [{"place": place.label, "station": place.station, "source": place.source} for place in PLACES]


@server.resource(NORMALS, title="Normals", mime_type="application/json", ttl_ms=DAY_MS, cache_scope="public")
def normals(place: str, month: Month) -> Weather:
    """What the weather is usually like in a place, such as "Tokyo, Japan", in a month from 1 to 12."""
    found = find(place).get(place)
    if found is None:
        raise ResourceNotFound
    return Weather.usual(found, month)


@server.completion(NORMALS, "place")
def complete_place(value: str) -> list[str]:
    return labels(value)


handler = server.lambda_handler
