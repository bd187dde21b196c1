import json

import pytest

from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.services.aws_endpoint import describe
from support.sam_applications import http, wait_until


def exchange(running, path):
    request_id = http(running.app.url(path)).headers["apigw-requestid"]
    found = running.app.recorder.exchange(request_id)
    assert found is not None
    return found


def last_direct(running, function):
    found = running.app.recorder.background_invocations()
    return [each for each in found if each.function == function and each.trigger == "direct"][-1]


def caused_by(running, caller):
    """Return the invocations for which their caller did not wait."""
    return [each for each in running.app.recorder.background_invocations() if each.caller == caller]


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


def test_calls_to_services_belong_to_the_invocation_that_makes_them(running):
    running.app.invoke("Asks", {})
    asks = last_direct(running, "Asks")
    calls = [(call.service, call.operation, call.detail, call.status) for call in asks.service_calls]
    assert ("lambda", "Invoke", "Echo", 200) in calls
    assert ("lambda", "Invoke", "Echo", 202) in calls
    assert ("lambda", "Invoke", "Nobody", 404) in calls
    assert ("kms", "Sign", "Key", 200) in calls
    assert next(call[1:] for call in calls if call[0] == "secretsmanager") == ("ListSecrets", "", 501)
    assert [each.function for each in asks.invocations] == ["Echo", "Odd"]
    assert all((each.trigger, each.caller) == ("invoke", asks.id) for each in asks.invocations)
    wait_until(lambda: caused_by(running, asks.id))
    [later] = caused_by(running, asks.id)
    assert (later.function, later.trigger) == ("Echo", "async")


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
