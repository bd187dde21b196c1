"""A client of a provider's REST API for databases. Replace it by a client of your provider.

The tool relies on two properties that most providers have: a request that is repeated with its
`Idempotency-Key` has one effect, and a database costs nothing until it is activated. DATABASES_API_URL names
the API.
"""

import json
import os
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger

from mcp_roundtrip import ToolError

logger = Logger()

TIMEOUT_S = 10

Prices = dict[str, dict[str, int]]
"""US cents a month by size and region."""


class Unavailable(Exception):
    """The API timed out, is overloaded or failed; a later attempt may succeed."""


@dataclass(frozen=True, slots=True)
class Database:
    id: str
    name: str
    size: str
    region: str
    price_cents: int

    @property
    def price(self) -> str:
        return f"${self.price_cents / 100:,.2f} a month"


def prices() -> Prices:
    """Return the price list; a size is offered in the regions that it has a price for. Raises ToolError."""
    try:
        found: Prices = _request("GET", "/v1/prices")
    except Unavailable:
        raise ToolError("The price list is unavailable. Try again in a minute.") from None
    return found


def create(name: str, size: str, region: str, idempotency_key: str) -> Database:
    """Reserve a database. Raises Unavailable."""
    body = {"name": name, "size": size, "region": region}
    return Database(**_request("POST", "/v1/databases", body, idempotency_key))


def activate(database: Database) -> str:
    """Start a database, from when on it costs money, and return its host. Raises Unavailable."""
    host = str(_request("POST", f"/v1/databases/{database.id}/activate")["host"])
    logger.info("database_activated", extra={"database": database.id, "price": database.price})
    return host


def delete(database: Database) -> None:
    """Delete a database that was not activated; also if it is gone. Raises Unavailable."""
    _request("DELETE", f"/v1/databases/{database.id}")


def _request(method: str, path: str, body: Any = None, idempotency_key: str | None = None) -> Any:
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen  # HTTP and TLS take 40 ms to import; lists need neither

    url = os.environ.get("DATABASES_API_URL", "")
    if not url:
        raise ToolError(
            "There is no database provider: the operator of this server has to set DATABASES_API_URL."
        )
    headers = {"Content-Type": "application/json"}
    if idempotency_key is not None:
        headers["Idempotency-Key"] = idempotency_key
    data = None if body is None else json.dumps(body).encode()
    # The URL is the operator's setting.
    request = Request(url + path, data, headers, method=method)  # noqa: S310
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            return json.load(response)
    except HTTPError as error:
        error.close()
        if error.code != 429 and error.code < 500:
            raise
        raise Unavailable(f"status {error.code}") from None
    except OSError as error:
        raise Unavailable(str(error)) from error
