"""Imported at the start of a function's process: prints every AWS call before it is made."""

import json
import os

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


def print_call(params, model, **_):
    for operation, request in authorized_as(model.name, params):
        logged = {name: request[name] for name in LOGGED_PARAMETERS if name in request}
        print("AWS", json.dumps([model.service_model.service_name, operation, logged]), flush=True)


def authorized_as(operation, params):
    """Return the operations that IAM authorizes: a transaction is authorized by its writes.

    Source: Developer Guide, "Using IAM with transactions".
    """
    if operation != "TransactWriteItems":
        return [(operation, params)]
    return [(f"{write}Item", request) for item in params["TransactItems"] for write, request in item.items()]


boto3.setup_default_session()
boto3.DEFAULT_SESSION.events.register("provide-client-params.*.*", print_call)

if os.environ["_HANDLER"] == "app.worker":  # always short of time, so that each step runs in another worker
    Deadline.is_short_of = lambda self, needs_ms=None: True
