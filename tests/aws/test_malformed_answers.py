"""Whatever an AWS service answers, its caller gets a value or the error that it documents.

A hostile server answers each operation over HTTP: with any JSON at any place of a valid answer, and with
bodies that are no such answer.
"""

import json
from base64 import b64encode
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_roundtrip.aws import dynamodb as dynamodb_store
from mcp_roundtrip.aws.audit_log import CloudWatchAuditLog, derive_audit_key
from mcp_roundtrip.aws.client_interface import AwsClient
from mcp_roundtrip.aws.dynamodb import DynamoStore
from mcp_roundtrip.aws.kms import KmsKey, KmsMacKey, KmsPublicKeys, KmsSigner, public_half
from mcp_roundtrip.aws.lambda_and_sqs import AwsDispatcher, invoke_owner
from mcp_roundtrip.internal_errors import AuditFailed, ForwardingFailed, KeyServiceError, StoreError
from mcp_roundtrip.tasks.store_interface import Absent, Change, Update
from support.aws_clients import EmulatedService, OneClient
from support.json_values import any_json, places, replaced
from support.scripted_server import Reply, ScriptedServer, respond, scripted
from support.tokens import BINDING, NOW, codec, epoch_keys, sealed
from support.tokens import MAC as MAC_KEY

PRIVATE = ec.derive_private_key(7, ec.SECP256R1())
DER = PRIVATE.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
ARN = "arn:aws:kms:eu-central-1:1:key/k"


ITEM = {"pk": {"S": "p"}, "sk": {"S": "M"}, "n": {"N": "1"}, "mark": {"B": "aWQ="}}
NEW = {"pk": "p", "sk": "M"}
CHANGE = Change(Absent("x"), set={"x": 1})


class Operation(NamedTuple):
    """An operation as its caller uses it: the call, the error it documents, a valid answer, its status."""

    service: str
    error: type[Exception]
    call: Callable[[AwsClient], object]
    answer: Any = {}  # noqa: RUF012 - nobody changes it
    status: int = 200


kms, dynamodb = partial(Operation, "kms", KeyServiceError), partial(Operation, "dynamodb", StoreError)


def store(client: AwsClient) -> DynamoStore:
    return DynamoStore(client, "t", lambda size: bytes(size), lambda pause_s: None)


def transaction(client: AwsClient) -> object:
    return store(client).put_new_and_update(NEW, Update("p", "O", CHANGE))


def forward(client: AwsClient) -> object:
    return invoke_owner(client, "f", {}, {}, 5)


def dispatcher(client: AwsClient) -> AwsDispatcher:
    return AwsDispatcher(OneClient(client), lambda: 0)


def sign(client: AwsClient) -> bytes:
    return KmsSigner(client, KmsKey(client, ARN, lambda: 0, public_half(DER))).sign(b"input")


SIGNED = {"KeyId": ARN, "Signature": b64encode(PRIVATE.sign(b"input", ec.ECDSA(SHA256()))).decode()}
PUBLIC = {"KeyId": ARN, "PublicKey": b64encode(DER).decode()}
MAC = {"KeyId": ARN, "Mac": b64encode(bytes(32)).decode()}
CONDITION = {"__type": "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException", "Item": ITEM}
CANCELLED = {
    "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
    "CancellationReasons": [{"Code": "ConditionalCheckFailed", "Message": "no"}, {"Code": "None"}],
}
REFUSED = {"Type": "User", "Message": "no", "code": "ResourceNotFoundException"}

OPERATIONS = {
    "GetPublicKey": kms(lambda client: KmsKey(client, ARN, lambda: 0).trusted_public_half(), PUBLIC),
    "Sign": kms(sign, SIGNED),
    "GenerateMac": kms(lambda client: KmsMacKey(client, ARN).mac(b"m"), MAC),
    "GenerateMac of the audit log": Operation(
        "kms", AuditFailed, lambda client: derive_audit_key(client, ARN, "i"), MAC
    ),
    "GetItem": dynamodb(lambda client: store(client).get("p", "M"), {"Item": ITEM}),
    "PutItem": dynamodb(lambda client: store(client).put_new(NEW)),
    "PutItem that exists": dynamodb(lambda client: store(client).put_new(NEW), CONDITION, 400),
    "UpdateItem": dynamodb(lambda client: store(client).update("p", "M", CHANGE), {"Attributes": ITEM}),
    "UpdateItem that fails": dynamodb(lambda client: store(client).update("p", "M", CHANGE), CONDITION, 400),
    "Query": dynamodb(lambda client: store(client).query("p"), {"Items": [ITEM, ITEM], "Count": 2}),
    "TransactWriteItems": dynamodb(transaction),
    "TransactWriteItems that is cancelled": dynamodb(transaction, CANCELLED, 400),
    "Invoke": Operation("lambda", ForwardingFailed, forward, {"statusCode": 200}),
    "Invoke that is refused": Operation("lambda", ForwardingFailed, forward, REFUSED, 404),
    "Invoke asynchronously": Operation(
        "lambda", StoreError, lambda client: dispatcher(client).dispatch("arn:a:lambda:r:1:function:f:1", "p")
    ),
    "SendMessage": Operation(
        "sqs",
        StoreError,
        lambda client: dispatcher(client).dispatch("http://127.0.0.1/1/q", "p"),
        {"MessageId": "m", "MD5OfMessageBody": "d"},
    ),
    "PutLogEvents": Operation(
        "logs",
        AuditFailed,
        lambda client: CloudWatchAuditLog(lambda: client, "g", "s").write(0, "line"),
        {"nextSequenceToken": "t"},
    ),
}


@pytest.fixture(scope="module")
def server():
    with scripted() as found:
        yield found


@pytest.fixture(scope="module", params=["signed", "boto3"])
def clients(request, server):
    return cache(lambda name: EmulatedService(name, server.url, kind=request.param))


def outcome(operation: Operation, client: AwsClient, server: ScriptedServer, reply: Reply) -> object:
    """Return what the caller gets, which is a value or the documented error."""
    server.script[:] = [reply] * 2  # an operation may make two requests
    try:
        return operation.call(client)
    except operation.error as error:
        return error


JSON = any_json(max_leaves=5) | st.sampled_from(
    ["", "x" * 9_999, {"B": "%"}, {"S": 1}, {"N": "1e"}, {"N": "9" * 5_000}, {"M": {}}, [[]]]
)


each_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)


@each_operation
@settings(max_examples=15)
@given(data=st.data())
def test_any_json_at_any_place_of_an_answer_is_a_value_or_the_documented_error(
    operation, clients, server, data
):
    path = data.draw(st.sampled_from([*places(operation.answer)]))
    answer = replaced(operation.answer, path, data.draw(JSON))
    status = data.draw(st.sampled_from([operation.status, 200, 400, 500]))
    outcome(operation, clients(operation.service), server, respond(status, json.dumps(answer).encode()))


BODIES = {
    "empty": b"",
    "no JSON": b"<html>",
    "not UTF-8": b'{"Item": "\xff"}',
    "deep objects": b'{"Item":' * 100_000 + b"1" + b"}" * 100_000,
    "deep in a member": b'{"Item": ' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    "a long number": b'{"Item": ' + b"9" * 10_000 + b"}",
    "wrong Base64": b'{"Mac": "%", "PublicKey": "=", "Signature": "a", "Item": {"x": {"B": "%"}}}',
    "a code of another type": b'{"code": false, "Message": "no"}',
    "null": b"null",
}


@each_operation
def test_a_body_that_is_no_answer_is_a_value_or_the_documented_error(operation, clients, server):
    for body in BODIES.values():
        for status in (200, 400):
            outcome(operation, clients(operation.service), server, respond(status, body))


@each_operation
def test_the_answers_that_these_tests_change_are_valid(operation, clients, server):
    reply = respond(operation.status, operation.answer)
    found = outcome(operation, clients(operation.service), server, reply)
    assert isinstance(found, operation.error) is (operation.answer in (REFUSED, CANCELLED))


def test_a_query_whose_pages_never_end_is_a_store_error(server, monkeypatch):
    monkeypatch.setattr(dynamodb_store, "MAX_PAGES", 3)
    client = EmulatedService("dynamodb", server.url, kind="signed")
    before = len(server.requests)
    server.script[:] = [respond(200, {"Items": [ITEM], "LastEvaluatedKey": {"pk": {"S": "p"}}})] * 9
    with pytest.raises(StoreError, match="too_many_pages"):
        store(client).query("p")
    assert len(server.requests) - before == 3


def test_an_empty_page_of_a_query_is_not_its_last(server):
    client = EmulatedService("dynamodb", server.url, kind="signed")
    server.script[:] = [
        respond(200, {"Items": [], "LastEvaluatedKey": {"pk": {"S": "p"}}}),
        respond(200, {"Items": [ITEM]}),
    ]
    assert len(store(client).query("p")) == 1


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_no_answer_of_kms_makes_a_state_invalid(server, body):
    """The client of a refused state would begin its call again, although the state is valid."""
    client = EmulatedService("kms", server.url, kind="signed")
    server.script[:] = [respond(200, body)] * 2
    with pytest.raises(KeyServiceError):
        codec(keys=KmsPublicKeys([KmsKey(client, ARN, lambda: 0)])).open(BINDING, sealed())
    encrypted = codec(epochs=epoch_keys(NOW, [MAC_KEY])).seal(BINDING, None, round=1, first_issued_at=None)
    kms_key = KmsMacKey(client, "arn:aws:kms:eu-central-1:1:key/mrk-1")
    with pytest.raises(KeyServiceError):
        codec(epochs=epoch_keys(NOW, [kms_key])).open(BINDING, encrypted)
