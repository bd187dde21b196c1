"""On the path of a function's process: every call of an AWS service is printed before it is made."""

import json
import os

import boto3

from mcp_roundtrip.deadline import Deadline

TOLD = (
    "KeyId",
    "MessageType",
    "SigningAlgorithm",
    "MacAlgorithm",
    "TableName",
    "FunctionName",
    "QueueUrl",
    "FromEmailAddress",
)
"""What a call is about, and what IAM's conditions see; nothing of what it carries."""


def tell(params, model, **_):
    for operation, request in authorized_as(model.name, params):
        about = {name: request[name] for name in TOLD if name in request}
        print("AWS", json.dumps([model.service_model.service_name, operation, about]), flush=True)


def authorized_as(operation, params):
    """IAM authorizes a transaction by its writes (Developer Guide, "Using IAM with transactions")."""
    if operation != "TransactWriteItems":
        return [(operation, params)]
    return [(f"{write}Item", request) for item in params["TransactItems"] for write, request in item.items()]


boto3.setup_default_session()
boto3.DEFAULT_SESSION.events.register("provide-client-params.*.*", tell)

if os.environ["_HANDLER"] == "app.worker":  # always short of time: each step is another worker's
    Deadline.is_short_of = lambda self, needs_ms=None: True
