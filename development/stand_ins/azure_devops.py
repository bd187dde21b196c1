"""A stand-in for Azure DevOps with six work items. It forgets all changes when it ends.

Source: Azure DevOps REST API reference 7.1, "Work Items" and "Wiql".
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

from mcp_roundtrip_testing.serving import Request, Response, json_response


def work_item(number: int, kind: str, title: str, state: str) -> dict[str, Any]:
    """Return a work item as the API does."""
    fields = {"System.WorkItemType": kind, "System.Title": title, "System.State": state}
    return {"id": number, "rev": 1, "fields": fields, "relations": []}


WORK_ITEMS = {
    item["id"]: item
    for item in (
        work_item(4187, "Bug", "Export drops the last row of a CSV file", "Resolved"),
        work_item(4301, "Bug", "Sign-in loops when the session cookie has expired", "Active"),
        work_item(4410, "Task", "Move the nightly build to the new agents", "Active"),
        work_item(4476, "User Story", "Save a search and be notified of new results", "New"),
        work_item(4522, "Bug", "Endless redirect after the laptop was asleep", "Active"),
        work_item(4530, "Bug", "Date picker starts the week on the wrong day", "New"),
    )
}


def respond(request: Request) -> Response:
    """Answer one request of the API."""
    url = urlsplit(request.target)
    query = {name: values[0] for name, values in parse_qs(url.query).items()}
    if (request.method, url.path) == ("POST", "/_apis/wit/wiql"):
        return json_response(200, {"workItems": [{"id": number} for number in _unresolved()]})
    if (request.method, url.path) == ("GET", "/_apis/wit/workitems"):
        rows = [WORK_ITEMS[int(number)] for number in query["ids"].split(",")]
        return json_response(200, {"count": len(rows), "value": rows})
    found = re.fullmatch(r"/_apis/wit/workitems/(\d+)", url.path)
    item = WORK_ITEMS.get(int(found[1])) if found else None
    if item is None:
        return json_response(
            404, {"message": "TF401232: Work item does not exist, or you do not have permissions."}
        )
    if request.method == "PATCH":
        update(item, json.loads(request.body))
    return json_response(200, item)


def update(item: dict[str, Any], patch: list[dict[str, Any]]) -> None:
    """Apply the operations of a JSON Patch that add fields and relations."""
    for operation in patch:
        if operation["path"] == "/relations/-":
            item["relations"].append(operation["value"])
        else:
            item["fields"][operation["path"].removeprefix("/fields/")] = operation["value"]
    item["rev"] += 1


def _unresolved() -> list[int]:
    closed = ("Resolved", "Closed")
    return [number for number, item in WORK_ITEMS.items() if item["fields"]["System.State"] not in closed]
