"""The places of `normals.json`: long-term monthly means, with their sources."""

import json
from dataclasses import dataclass
from pathlib import Path


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


PLACES = [
    Place(**row) for row in json.loads(Path(__file__).with_name("normals.json").read_text("utf-8"))["places"]
]


def find(location: str) -> dict[str, Place]:
    """The places of that name, by label."""
    return {place.label: place for place in PLACES if place.matches(location)}


def names() -> str:
    """Every name there are figures for."""
    return ", ".join(sorted({place.name for place in PLACES}))


def labels(start: str) -> list[str]:
    """The labels that begin with `start`, upper or lower case."""
    return sorted(place.label for place in PLACES if place.label.casefold().startswith(start.casefold()))
