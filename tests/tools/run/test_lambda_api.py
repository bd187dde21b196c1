from pathlib import Path

import pytest

from mcp_roundtrip_tools.run.execution.environment import InvocationResult
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.template.model import Function

FUNCTIONS = {"F": Function("F", "a.b", Path("/"), (), {}, 3, 128, alias="live")}
PATH = "/2015-03-31/functions/{}/invocations"


def call(name="F", body=b"", *, query="", headers=(), too_large=False):
    calls: list[tuple[object, ...]] = []

    def invoke(*arguments: object) -> InvocationResult:
        calls.append(arguments)
        return InvocationResult(b'"ok"')

    api = LambdaApi(lambda: FUNCTIONS, invoke)
    return api.respond(Request("POST", PATH.format(name) + query, headers, body, too_large)), calls


def code_of(reply):
    return dict(reply.headers).get("x-amzn-errortype")


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


@pytest.mark.parametrize(
    ("name", "qualifier"),
    [
        ("F", None),
        ("F:live", "live"),
        ("arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3AF", None),
        ("000000000000:function:F:$LATEST", "$LATEST"),
    ],
)
def test_a_function_is_addressed_by_name_partial_arn_or_arn(name, qualifier):
    reply, calls = call(name, b"[1]")
    assert (reply.status, reply.body, calls) == (200, b'"ok"', [("F", b"[1]", qualifier, None)])


def test_a_qualifier_may_be_a_query_parameter():
    reply, calls = call("F", query="?Qualifier=live")
    assert (reply.status, calls) == (200, [("F", b"{}", "live", None)])


def test_an_empty_payload_is_an_empty_object():
    assert call()[1] == [("F", b"{}", None, None)]


@pytest.mark.parametrize("name", ["G", "F:other", "", "G:live"])
def test_an_unknown_function_or_qualifier_is_not_found(name):
    reply, calls = call(name)
    assert (reply.status, code_of(reply), calls) == (404, "ResourceNotFoundException", [])


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b" " * (6 * 1024 * 1024 + 1), "RequestResponse"), (b" " * (1024 * 1024 + 1), "Event")],
)
def test_a_payload_over_the_limit_is_refused(body, kind):
    reply, calls = call(body=body, headers=(("X-Amz-Invocation-Type", kind),))
    assert (reply.status, code_of(reply), calls) == (413, "RequestTooLargeException", [])


def test_a_payload_that_was_refused_unread_is_too_large():
    assert call(too_large=True)[0].status == 413


def test_a_failed_function_is_a_200_with_a_header():
    api = LambdaApi(lambda: FUNCTIONS, lambda *call: InvocationResult(b"{}", failed=True))
    reply = api.respond(Request("POST", PATH.format("F"), ()))
    assert (reply.status, dict(reply.headers)["X-Amz-Function-Error"]) == (200, "Unhandled")


def test_any_other_operation_is_not_implemented():
    api = LambdaApi(lambda: FUNCTIONS, lambda *call: InvocationResult(b"{}"))
    assert api.respond(Request("GET", "/2015-03-31/functions/", ())).status == 501
