"""Imported at the start of a function's process: prints every AWS call before it is made."""

import json
import os
from typing import Any

import boto3

from mcp_roundtrip.deadline import Deadline

LOGGED_PARAMETERS = (
    "KeyId",
    "MessageType",
    "SigningAlgorithm",
    "MacAlgorithm",
    "TableName",
    "FunctionName",
    "QueueUrl",
    "FromEmailAddress",
)
"""Parameters that name resources or are condition keys of IAM, without payloads."""


def print_call(params: dict[str, Any], model: Any, **_: Any) -> None:
    for operation, request in authorized_as(model.name, params):
        logged = {name: request[name] for name in LOGGED_PARAMETERS if name in request}
        print("AWS", json.dumps([model.service_model.service_name, operation, logged]), flush=True)


def authorized_as(operation: str, params: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the operations that IAM authorizes: a transaction is authorized by its writes.

    Source: Developer Guide, "Using IAM with transactions".
    """
    if operation != "TransactWriteItems":
        return [(operation, params)]
    return [(f"{write}Item", request) for item in params["TransactItems"] for write, request in item.items()]


boto3.setup_default_session()
assert boto3.DEFAULT_SESSION is not None
boto3.DEFAULT_SESSION.events.register("provide-client-params.*.*", print_call)

if os.environ["_HANDLER"] == "app.worker":  # always short of time, so that each step runs in another worker
    setattr(Deadline, "is_short_of", lambda self, needs_ms=None: True)  # noqa: B010 - mypy refuses the assignment
