"""What the weather is usually like somewhere, asking which place is meant when several share the name."""

from typing import Annotated

from pydantic import BaseModel, Field

from mcp_roundtrip import Context, Server, ToolError, one_of
from places import find, names

server = Server("weather")


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
    places = find(location)
    if not places:
        raise ToolError(f"There are no figures for {location[:80]!r}. The cities are: {names()}.")
    label = next(iter(places))
    if len(places) > 1:
        which = one_of(places, description="City and country")
        label = ctx.elicit("place", f"There are {len(places)} places called {location}. Which one?", which)
    place = places[label]
    return Weather(
        place=label,
        month=month,
        high_c=place.high_c[month - 1],
        low_c=place.low_c[month - 1],
        precipitation_mm=place.precipitation_mm[month - 1],
        source=f"{place.source}, {place.station}",
    )


handler = server.lambda_handler
