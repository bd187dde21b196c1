"""A provider's databases: which sizes it offers where, and at what price.

It stands for the provider's API, with the two properties that a tool may rely on with any good one: a request
that is repeated with its idempotency token is done once, and a database that is never activated is free and
gone after a day. Nothing is kept: what a request returns follows from what it was given.
"""

import json
from dataclasses import dataclass
from pathlib import Path

PRICES: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("prices.json").read_text("utf-8"))
"""US cents a month, by size and region; a size is offered in the regions it has a price for."""


@dataclass(frozen=True, slots=True)
class Database:
    id: str
    name: str
    size: str
    region: str

    @property
    def price(self) -> str:
        """What it costs, in words."""
        return f"${PRICES[self.size][self.region] / 100:,.2f} a month"


def create(name: str, size: str, region: str, token: str) -> Database:
    """Reserve a database; the same `token` always names the same one."""
    return Database(f"db-{token}", name, size, region)


def activate(database: Database) -> str:
    """Start it, and its bill with it; returns the host to connect to."""
    return f"{database.id}.{database.region}.databases.example"


def delete(database: Database) -> str:
    """Give a reserved database back; returns its id."""
    return database.id
