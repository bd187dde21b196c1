"""Imported at the start of a function's process: prints every AWS call before it is made."""

import json
import os
from collections.abc import Mapping
from typing import Any

import boto3

from mcp_roundtrip.aws.signed_client import SignedClient
from mcp_roundtrip.engine.deadline import Deadline

LOGGED_PARAMETERS = (
    "KeyId",
    "MessageType",
    "SigningAlgorithm",
    "MacAlgorithm",
    "TableName",
    "FunctionName",
    "QueueUrl",
    "FromEmailAddress",
    "SecretId",
    "logGroupName",
)
"""Parameters that name resources or are condition keys of IAM, without payloads."""


def print_call(params: dict[str, Any], model: Any, **_: Any) -> None:
    log_call(model.service_model.service_name, model.name, params)


def log_call(service: str, called: str, params: Mapping[str, Any]) -> None:
    for operation, request in authorized_as(called, params):
        logged = {name: request[name] for name in LOGGED_PARAMETERS if name in request}
        print("AWS", json.dumps([service, operation, logged]), flush=True)


def authorized_as(operation: str, params: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the operations that IAM authorizes: a transaction is authorized by its writes.

    Source: Developer Guide, "Using IAM with transactions".
    """
    if operation != "TransactWriteItems":
        return [(operation, params)]
    return [(f"{write}Item", request) for item in params["TransactItems"] for write, request in item.items()]


def print_signed_call(
    client: SignedClient, operation: str, *, timeout_s: float | None = None, **parameters: Any
) -> Any:
    log_call(client.service.name, operation, parameters)
    return call(client, operation, timeout_s=timeout_s, **parameters)


call = SignedClient.call
setattr(SignedClient, "call", print_signed_call)  # noqa: B010 - mypy refuses the assignment
boto3.setup_default_session()
assert boto3.DEFAULT_SESSION is not None
boto3.DEFAULT_SESSION.events.register("provide-client-params.*.*", print_call)


def is_short_of(deadline: Deadline, needs_ms: float | None = None) -> bool:
    """Return True in a worker, so that each step runs in another one."""
    return os.environ["_HANDLER"] == "app.worker" or has_little_time(deadline, needs_ms)


has_little_time = Deadline.is_short_of
setattr(Deadline, "is_short_of", is_short_of)  # noqa: B010 - mypy refuses the assignment
