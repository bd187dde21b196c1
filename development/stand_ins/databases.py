"""A stand-in for the database provider that functions/provision calls. It forgets everything when it ends."""

from __future__ import annotations

import json
import os
import re
import time
from hashlib import sha256
from typing import Any

from mcp_roundtrip_testing.serving import Request, Response, json_response

PRICES = {
    "small": {"eu-central-1": 2920, "eu-west-1": 2628, "us-east-1": 2482},
    "medium": {"eu-central-1": 11680, "eu-west-1": 10512, "us-east-1": 9928},
    "large": {"eu-west-1": 42048, "us-east-1": 39712},
}
"""US cents a month by size and region."""

databases: dict[str, dict[str, Any]] = {}
"""Databases by id. The id follows from the idempotency key, so a repeated request creates no second one."""


def respond(request: Request) -> Response:
    """Answer one request of the API."""
    path = request.target
    if (request.method, path) == ("GET", "/v1/prices"):
        return json_response(200, PRICES)
    if (request.method, path) == ("POST", "/v1/databases"):
        _take_time()
        return create(json.loads(request.body), request.header("idempotency-key"))
    found = re.fullmatch(r"/v1/databases/(db-[0-9a-f]+)(/activate)?", path)
    if found and (request.method, found[2]) == ("POST", "/activate") and found[1] in databases:
        _take_time()
        region = databases[found[1]]["region"]
        return json_response(200, {"host": f"{found[1]}.{region}.databases.example"})
    if found and (request.method, found[2]) == ("DELETE", None):
        databases.pop(found[1], None)
        return json_response(200, {})
    return json_response(404, {"error": "not found"})


def _take_time() -> None:
    """Wait as a provider does, whose databases take minutes: meanwhile the worker of a task can be killed."""
    time.sleep(float(os.environ.get("DATABASES_TAKE_S", "0")))


def create(wanted: dict[str, str], idempotency_key: str | None) -> Response:
    """Reserve a database, once for each idempotency key."""
    price = PRICES.get(wanted["size"], {}).get(wanted["region"])
    if price is None or not idempotency_key:
        return json_response(400, {"error": "size, region and Idempotency-Key are required"})
    identity = f"db-{sha256(idempotency_key.encode()).hexdigest()[:16]}"
    return json_response(
        201, databases.setdefault(identity, {"id": identity, **wanted, "price_cents": price})
    )
