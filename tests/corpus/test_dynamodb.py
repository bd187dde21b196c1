import json
from collections.abc import Mapping
from typing import Any

import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber

from corpus import dynamodb
from corpus.aws_account import TABLE
from corpus.recording import all_cases, record
from mcp_roundtrip_tools.run.services.aws_endpoint import ServiceFault
from support.aws_clients import REGION
from support.dynamodb_clients import client, new_table

CASES = (
    "task: is answered while it sleeps",
    "task: gets one of two answers",
    "row: no place, a long step, client shows forms",
    "parked: client declares nothing, call opened after it expired",
)


def call_moto(operation: str, request: Mapping[str, Any]) -> tuple[int, Any]:
    """Return the HTTP status and the answer. moto intercepts botocore only."""
    headers = HTTPHeaders()
    headers["X-Amz-Target"] = f"DynamoDB_20120810.{operation}"
    headers["Content-Type"] = "application/x-amz-json-1.0"
    url = f"https://dynamodb.{REGION}.amazonaws.com/"
    sent = AWSPreparedRequest("POST", url, headers, json.dumps(request).encode(), False)
    answered = BotocoreStubber().process_request(sent)
    assert answered is not None
    return answered[0], json.loads(answered[2])


def compared(operation: str, status: int, answer: Any) -> Any:
    """Return what both tables say in the same words."""
    if status == 200:
        return {name: answer[name] for name in ("Item", "Items", "Attributes") if name in answer}
    reasons = [reason["Code"] for reason in answer.get("CancellationReasons", ())]
    return answer["__type"].rpartition("#")[2], answer.get("Item"), reasons


@pytest.mark.parametrize("name", CASES)
def test_each_call_gets_the_answer_of_moto(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, Any, int, Any]] = []
    own = dynamodb.Table.call

    def call(table: dynamodb.Table, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        try:
            answer = own(table, operation, request)
        except ServiceFault as refusal:
            calls.append((operation, request, 400, json.loads(refusal.response().body)))
            raise
        calls.append((operation, request, 200, answer))
        return answer

    monkeypatch.setattr(dynamodb.Table, "call", call)
    record(next(case for case in all_cases() if case.name == name))
    assert {operation for operation, *_ in calls} > {"GetItem", "TransactWriteItems"}
    with mock_aws():
        new_table(client(), TABLE)
        for operation, request, status, answer in calls:
            assert compared(operation, status, answer) == compared(operation, *call_moto(operation, request))
