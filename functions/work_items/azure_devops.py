"""A client of the Azure DevOps REST API for work items, version 7.1.

AZURE_DEVOPS_URL is a project's URL, such as https://dev.azure.com/example/engine. AZURE_DEVOPS_SECRET is the
name of the secret in AWS Secrets Manager that holds a personal access token; without it, requests carry none.
"""

import json
import os
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from mcp_roundtrip import ToolError

TIMEOUT_S = 10
MAX_ITEMS = 50

FIELDS = {"System.State": "State", "System.Title": "Title", "System.AssignedTo": "Assigned To"}
STATES = ("New", "Active", "Resolved", "Closed")
DUPLICATE_OF = "System.LinkTypes.Duplicate-Reverse"

UNRESOLVED = (
    "SELECT [System.Id] FROM WorkItems WHERE [System.TeamProject] = @project "
    "AND [System.State] NOT IN ('Resolved', 'Closed') ORDER BY [System.Id]"
)


class Unavailable(Exception):
    """The API timed out, is overloaded or failed; a later attempt may succeed."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """`duplicate_of` has the URLs of the work items that this one duplicates."""

    id: int
    type: str
    title: str
    state: str
    duplicate_of: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        return f"{self.type} #{self.id}"

    @property
    def heading(self) -> str:
        return f"{self.label}: {self.title}"


def find(number: int) -> WorkItem:
    """Return the work item of that ID. Raises ToolError if there is none."""
    item = _read("GET", f"workitems/{number}", {"$expand": "relations"})
    if item is None:
        raise ToolError(f"There is no work item #{number}.")
    return _work_item(item)


def find_bug(number: int) -> WorkItem:
    """Return the bug of that ID. Raises ToolError if there is none."""
    item = find(number)
    if item.type != "Bug":
        raise ToolError(f"{item.label} is not a bug. Only bugs can be resolved, as duplicates only of bugs.")
    return item


def unresolved() -> list[WorkItem]:
    """Return the work items that are neither resolved nor closed, by ID."""
    found = _read("POST", "wiql", {"$top": MAX_ITEMS}, {"query": UNRESOLVED})
    ids = ",".join(str(row["id"]) for row in found["workItems"])
    if not ids:
        return []
    fields = "System.WorkItemType,System.Title,System.State"
    rows = _read("GET", "workitems", {"ids": ids, "fields": fields})["value"]
    return [_work_item(row) for row in rows]


def check(fields: dict[str, str]) -> None:
    """Raise ToolError for fields or values that cannot be set."""
    known = f"The fields are {', '.join(FIELDS)}."
    if not fields:
        raise ToolError(f"Name at least one field. {known}")
    if unknown := [name for name in fields if name not in FIELDS]:
        raise ToolError(f"The field {unknown[0][:80]!r} cannot be set. {known}")
    if fields.get("System.State", "New") not in STATES:
        raise ToolError(f"System.State must be one of {', '.join(STATES)}.")


def update(item: WorkItem, fields: dict[str, str], original: int | None = None) -> None:
    """Set fields, and link the work item as a duplicate of `original`. Idempotent. Raises Unavailable."""
    patch: list[dict[str, Any]] = [
        {"op": "add", "path": f"/fields/{name}", "value": value} for name, value in fields.items()
    ]
    url = f"{_project()}/_apis/wit/workItems/{original}"
    if original is not None and url not in item.duplicate_of:
        patch.append({"op": "add", "path": "/relations/-", "value": {"rel": DUPLICATE_OF, "url": url}})
    _request("PATCH", f"workitems/{item.id}", {}, patch, "application/json-patch+json")


def _work_item(row: dict[str, Any]) -> WorkItem:
    fields = row["fields"]
    relations = row.get("relations", [])
    return WorkItem(
        row["id"],
        fields["System.WorkItemType"],
        fields["System.Title"],
        fields["System.State"],
        tuple(relation["url"] for relation in relations if relation["rel"] == DUPLICATE_OF),
    )


def _read(method: str, path: str, query: dict[str, Any], body: Any = None) -> Any:
    """Send a request that changes nothing. Raises ToolError while the API is unavailable."""
    try:
        return _request(method, path, query, body)
    except Unavailable:
        raise ToolError("Azure DevOps is unavailable. Try again in a minute.") from None


def _request(
    method: str, path: str, query: dict[str, Any], body: Any = None, content_type: str = "application/json"
) -> Any:
    """Return the JSON of a response, None for status 404."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen  # HTTP and TLS take 40 ms to import; lists need neither

    url = f"{_project()}/_apis/wit/{path}?{urlencode({**query, 'api-version': '7.1'})}"
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": content_type, **_authorization()}
    # The URL is the operator's setting.
    request = Request(url, data, headers, method=method)  # noqa: S310
    try:
        with urlopen(request, timeout=TIMEOUT_S) as response:  # noqa: S310
            return json.load(response)
    except HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        if error.code == 401:  # the token was replaced: the next call reads the new one
            _authorization.cache_clear()
        if error.code != 429 and error.code < 500:
            raise
        raise Unavailable(f"status {error.code}") from None
    except OSError as error:
        raise Unavailable(str(error)) from error


def _project() -> str:
    url = os.environ.get("AZURE_DEVOPS_URL", "").rstrip("/")
    if not url:
        raise ToolError("There is no project: the operator of this server has to set AZURE_DEVOPS_URL.")
    return url


@cache
def _authorization() -> dict[str, str]:
    secret = os.environ.get("AZURE_DEVOPS_SECRET", "")
    if not secret:
        return {}
    import boto3
    from botocore.exceptions import ClientError

    try:
        token = boto3.client("secretsmanager").get_secret_value(SecretId=secret)["SecretString"]
    except ClientError as error:
        # A name without a secret matches no ARN, so IAM may deny the request.
        if error.response["Error"]["Code"] not in ("ResourceNotFoundException", "AccessDeniedException"):
            raise
        raise ToolError(
            "There is no access token: the operator of this server has to create the secret that"
            " AZURE_DEVOPS_SECRET names."
        ) from None
    return {"Authorization": f"Basic {b64encode(f':{token}'.encode()).decode()}"}
