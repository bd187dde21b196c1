"""Requests and responses of AWS services: this project's client and botocore's agree about both."""

import json
from datetime import UTC, datetime
from unittest.mock import patch

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from mcp_roundtrip.aws.client_interface import AwsError
from support.aws_clients import KINDS, REGION, EmulatedService, signed_client
from support.scripted_server import respond, scripted

KEY = {"pk": {"S": "p#Ü世"}, "sk": {"S": "M"}}
ITEM = {**KEY, "n": {"N": "39"}, "B": {"B": b"\x00\xff"}, "raw": {"B": b""}}
ARN = "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:a-b_c:7"

STREAM = {"logGroupName": "g", "logStreamName": "2026/11/23/f[3]0123"}
QUEUE = {"QueueUrl": "https://sqs.test/1/q"}
PAYLOAD = {"FunctionName": ARN, "Payload": '{"a": "ß"}'.encode(), "ClientContext": "e30="}
MESSAGE = {"KeyId": "k", "Message": b"\x00x", "MessageType": "RAW", "SigningAlgorithm": "ECDSA_SHA_256"}
UPDATE = {
    "UpdateExpression": "SET #0 = :0",
    "ExpressionAttributeNames": {"#0": "B"},
    "ExpressionAttributeValues": {":0": {"B": b"\xff"}},
}
QUERY = {
    "KeyConditionExpression": "pk = :pk",
    "ExpressionAttributeValues": {":pk": {"S": "p"}},
    "ExclusiveStartKey": KEY,
}
ITEMS = [{"Put": {"TableName": "t", "Item": ITEM}}]

CALLS = {
    "Invoke": ("lambda", PAYLOAD),
    "Invoke Event": ("lambda", {"FunctionName": "f", "Payload": b"{}", "InvocationType": "Event"}),
    "Sign": ("kms", MESSAGE),
    "GenerateMac": ("kms", {"KeyId": "k", "Message": b"", "MacAlgorithm": "HMAC_SHA_256"}),
    "GetPublicKey": ("kms", {"KeyId": "k"}),
    "GetItem": ("dynamodb", {"TableName": "t", "Key": KEY, "ConsistentRead": True}),
    "PutItem": ("dynamodb", {"TableName": "t", "Item": ITEM, "ConditionExpression": "a_not_exists(pk)"}),
    "UpdateItem": ("dynamodb", {"TableName": "t", "Key": KEY, **UPDATE}),
    "Query": ("dynamodb", {"TableName": "t", **QUERY}),
    "TransactWriteItems": ("dynamodb", {"TransactItems": ITEMS, "ClientRequestToken": "c" * 36}),
    "PutLogEvents": ("logs", {**STREAM, "logEvents": [{"timestamp": 1, "message": "ß"}]}),
    "SendMessage": ("sqs", {**QUEUE, "MessageBody": '{"task": "ß"}', "DelaySeconds": 900}),
    "ChangeMessageVisibility": ("sqs", {**QUEUE, "ReceiptHandle": "r+/=", "VisibilityTimeout": 65}),
}

OWN_HEADERS = {
    *("user-agent", "authorization", "x-amz-date", "accept-encoding", "connection", "host", "content-length"),
    *("amz-sdk-invocation-id", "amz-sdk-request"),  # botocore numbers the attempts
    "x-amzn-query-mode",  # botocore asks SQS for the names of errors of its former protocol
}
"""Headers that differ between the clients, or with the time."""


def requested(kind, operation, service, parameters):
    with scripted() as server:
        client = EmulatedService(service, server.url, kind=kind)
        client.call(operation.partition(" ")[0], **parameters)
        client.close()
    [request] = server.requests
    return request


@pytest.mark.parametrize(("operation", "call"), CALLS.items(), ids=CALLS)
def test_the_request_is_the_one_that_botocore_sends(operation, call):
    service, parameters = call
    ours, theirs = (requested(kind, operation, service, parameters) for kind in KINDS)
    assert (ours.method, ours.target) == (theirs.method, theirs.target)
    assert json.loads(ours.body) == json.loads(theirs.body)
    sent = {name: value for name, value in ours.headers if name not in OWN_HEADERS}
    assert sent == {name: value for name, value in theirs.headers if name not in OWN_HEADERS}


@pytest.mark.parametrize(("operation", "call"), CALLS.items(), ids=CALLS)
def test_the_signature_is_valid_for_the_request_that_arrives(operation, call):
    request = requested("signed", operation, *call)
    signature = request.header("authorization")
    signed = signature.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date"} <= set(signed)
    oracle = AWSRequest(request.method, f"http://{request.header('host')}{request.target}", data=request.body)
    for name in signed:
        oracle.headers[name] = request.header(name)
    at = datetime.strptime(request.header("x-amz-date"), "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    with patch.object(botocore.auth, "get_current_datetime", lambda: at):
        SigV4Auth(Credentials("test", "test"), call[0], REGION).add_auth(oracle)
    assert oracle.headers["Authorization"] == signature


def outcome(kind, service, operation, parameters, reply):
    """Return the members of a response or the code and the message of an error."""
    with scripted(reply) as server:
        client = EmulatedService(service, server.url, kind=kind)
        try:
            found = client.call(operation, **parameters)
        except AwsError as error:
            wanted = ("Item", "CancellationReasons")
            members = {name: error.members[name] for name in wanted if name in error.members}
            # botocore takes the text of the status for the message, where there is no code.
            return error.code, error.message * (not error.code.isdecimal()), error.status, members
        finally:
            client.close()
    return {name: value for name, value in found.items() if name != "ResponseMetadata"}


def refused(code, status=400, **members):
    return respond(status, {"__type": code, **members})


CONDITION = "com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"
STORED = {"pk": {"S": "p"}, "B": {"B": "AP8="}}
REASONS = [
    {"Code": "None"},
    {"Code": "ConditionalCheckFailed", "Message": "failed", "Item": {"B": {"B": "AP8="}}},
]


def typed(status, code, body):
    return respond(status, body, x_amzn_ErrorType=code)


RESPONSES = {
    "signature": ("Sign", respond(200, {"KeyId": "k", "Signature": "AP8=", "SigningAlgorithm": "x"})),
    "MAC": ("GenerateMac", respond(200, {"KeyId": "k", "Mac": "AA=="})),
    "item": ("GetItem", respond(200, {"Item": {**STORED, "n": {"N": "1"}, "S": {"S": "AA=="}}})),
    "no item": ("GetItem", respond(200, {})),
    "pages": (
        "Query",
        respond(200, {"Items": [STORED], "Count": 1, "LastEvaluatedKey": {"B": {"B": "AA=="}}}),
    ),
    "sent": ("SendMessage", respond(200, {"MessageId": "m", "MD5OfMessageBody": "0" * 32})),
    "hidden": ("ChangeMessageVisibility", respond(200, b"")),
    "payload": ("Invoke", respond(200, b'"\xc3\x9f"')),
    "function error": ("Invoke", respond(200, {"errorType": "X"}, X_Amz_Function_Error="Unhandled")),
    "accepted": ("Invoke", respond(202, b"")),
    "condition": ("PutItem", refused(CONDITION, message="failed", Item=STORED)),
    "condition without item": ("PutItem", refused(CONDITION, Message="failed")),
    "cancelled": (
        "TransactWriteItems",
        refused("x#TransactionCanceledException", CancellationReasons=REASONS),
    ),
    "key state": ("Sign", refused("KMSInvalidStateException", message="pending deletion")),
    "unknown key": ("Sign", refused("NotFoundException:http://internal.amazon.com/coral/")),
    "failing": ("Sign", respond(500, {"__type": "KMSInternalException"})),
    "no JSON": ("Sign", respond(503, b"<html>Service Unavailable</html>")),
    "no body": ("Sign", respond(502, b"")),
    "redirect": ("GetItem", respond(301, b"", Location="https://evil.test/")),
    "no function": ("Invoke", typed(404, "ResourceNotFoundException", {"Type": "User", "Message": "none"})),
    "too many requests": ("Invoke", typed(429, "TooManyRequestsException", {"Reason": "Limit"})),
    "code in the body": ("Invoke", respond(400, {"code": "InvalidRequestContentException", "message": "x"})),
    "type in the body": ("Invoke", respond(403, {"__type": "x#AccessDeniedException", "Message": "x"})),
    "no code": ("Invoke", respond(413, {"Message": "Request Too Long"})),
    "no queue": (
        "SendMessage",
        respond(400, {"__type": "com.amazonaws.sqs#QueueDoesNotExist", "message": "no queue"}),
    ),
}


@pytest.mark.parametrize(("operation", "reply"), RESPONSES.values(), ids=RESPONSES)
def test_the_response_means_what_it_means_for_botocore(operation, reply):
    service, parameters = CALLS[operation]
    ours, theirs = (outcome(kind, service, operation, parameters, reply) for kind in KINDS)
    assert ours == theirs


def failed_with(code: str, message: str) -> str:
    """Return the text of the error of a call that AWS refuses."""
    with scripted(refused(code, message=message)) as server:
        client = signed_client("kms", server.url)
        with pytest.raises(AwsError) as failed:
            client.call("GetPublicKey", KeyId="k")
    return f"{failed.value!r} {failed.value}"


@pytest.mark.parametrize("code", ["ValidationException", "KMSInternalException"])
def test_an_error_does_not_show_a_message_that_may_quote_the_request(code):
    assert "secret" not in failed_with(code, "very secret")


@pytest.mark.parametrize(
    "code",
    [
        *("AccessDenied", "DisabledException", "KMSInvalidStateException", "KMSNotFoundException"),
        *("KmsDisabled", "NotFoundException"),
    ],
)
def test_an_error_about_a_resource_shows_the_message_that_names_it(code):
    assert "arn:aws:kms:eu-west-1:1:key/a is" in failed_with(code, "arn:aws:kms:eu-west-1:1:key/a is …")
