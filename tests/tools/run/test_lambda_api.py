import json
from pathlib import Path

import pytest

from mcp_roundtrip_tools.run.execution.runtime_process import InvocationResult
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.services.aws_endpoint import describe
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.template.model import Function
from support.sam_applications import http, wait_until

FUNCTIONS = {"F": Function("F", "a.b", Path("/"), (), {}, 3, 128, alias="live")}
PATH = "/2015-03-31/functions/F/invocations"


def test_functions_reach_each_other_through_a_real_client(running):
    answers = running.app.invoke("Asks", {})
    echo = answers.pop("echo")
    assert echo["event"] == {"a": 1}
    assert echo["arn"] == "arn:aws:lambda:us-east-1:000000000000:function:Echo:live"
    assert echo["custom"] == {"who": "Zoë"}
    assert answers == {
        "error": ["Unhandled", "ValueError"],
        "event": 202,
        "Nobody": "not found",
        "Echo:other": "not found",
        "secretsmanager": 501,
        "valid": True,
    }
    assert_calls_belong_to_their_invocation(running)


def assert_calls_belong_to_their_invocation(running):
    recorder = running.app.recorder
    *_, asks = [each for each in recorder.background_invocations() if each.trigger == "direct"]
    calls = [(call.service, call.operation, call.detail, call.status) for call in asks.service_calls]
    assert ("lambda", "Invoke", "Echo", 200) in calls
    assert ("lambda", "Invoke", "Echo", 202) in calls
    assert ("lambda", "Invoke", "Nobody", 404) in calls
    assert ("kms", "Sign", "Key", 200) in calls
    assert next(call[1:] for call in calls if call[0] == "secretsmanager") == ("ListSecrets", "", 501)
    assert [each.function for each in asks.invocations] == ["Echo", "Odd"]
    assert all((each.trigger, each.caller) == ("invoke", asks.id) for each in asks.invocations)
    wait_until(lambda: any(each.caller == asks.id for each in recorder.background_invocations()))
    [later] = [each for each in recorder.background_invocations() if each.caller == asks.id]
    assert (later.function, later.trigger) == ("Echo", "async"), "its caller did not wait for it"


@pytest.mark.parametrize(("size", "kind"), [(6 * 1024 * 1024, "RequestResponse"), (1024 * 1024, "Event")])
def test_a_payload_over_the_limit_is_refused(size, kind):
    api = LambdaApi(lambda: FUNCTIONS, lambda *call: InvocationResult(b"{}"))
    headers = (("X-Amz-Invocation-Type", kind),)
    replies = [api.respond(Request("POST", PATH, headers, b" " * length)) for length in (size, size + 1)]
    assert replies[0].status < 300
    assert api.respond(Request("POST", PATH, headers, too_large=True)).status == 413, "it was not read"
    assert replies[1].status == 413
    assert dict(replies[1].headers)["x-amzn-errortype"] == "RequestTooLargeException"


def exchange(running, path):
    request_id = http(running.app.url(path)).headers["apigw-requestid"]
    found = running.app.recorder.exchange(request_id)
    assert found is not None
    return found


def test_the_next_request_is_recorded_with_the_same_environment(running):
    first, again = (exchange(running, "/echo").invocations[0] for _ in range(2))
    environment = again.environment_id, again.is_new_environment, again.init_ms
    assert environment == (first.environment_id, False, None)


def test_a_failed_initialization_is_recorded(running):
    [invocation] = exchange(running, "/broken").invocations
    assert (invocation.init_failed, invocation.is_new_environment) == (True, True)
    assert invocation.error is not None
    assert invocation.error.startswith("Runtime.ImportModuleError: ")
    assert invocation.init_ms is not None
    assert any("no_such_module" in line.text for line in invocation.log_lines)


@pytest.mark.parametrize(
    ("service", "operation", "body", "expected"),
    [
        ("dynamodb", "GetItem", {"TableName": "T", "Key": 1}, "T"),
        ("dynamodb", "TransactWriteItems", {"TransactItems": [{"Put": {"TableName": "T"}}]}, "T"),
        ("dynamodb", "BatchGetItem", {"RequestItems": {"T": {}, "U": {}}}, "T, U"),
        ("sqs", "SendMessage", {"QueueUrl": "http://h/0/Q"}, "Q"),
        ("kms", "Sign", "no object", ""),
    ],
)
def test_a_call_is_described_by_what_it_names_without_its_values(service, operation, body, expected):
    signed = f"AWS4-HMAC-SHA256 Credential=K/20260101/us-east-1/{service}/aws4_request, Signature=0"
    headers = (("authorization", signed), ("x-amz-target", f"{service}.{operation}"))
    request = Request("POST", "/", headers, json.dumps(body).encode())
    assert describe(request) == (service, operation, expected)
