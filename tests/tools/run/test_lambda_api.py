from pathlib import Path

import pytest

from mcp_roundtrip_tools.run.execution.environment import InvocationResult
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.services.lambda_api import LambdaApi
from mcp_roundtrip_tools.template.model import Function

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


@pytest.mark.parametrize(("size", "kind"), [(6 * 1024 * 1024, "RequestResponse"), (1024 * 1024, "Event")])
def test_a_payload_over_the_limit_is_refused(size, kind):
    api = LambdaApi(lambda: FUNCTIONS, lambda *call: InvocationResult(b"{}"))
    headers = (("X-Amz-Invocation-Type", kind),)
    replies = [api.respond(Request("POST", PATH, headers, b" " * length)) for length in (size, size + 1)]
    assert replies[0].status < 300
    assert api.respond(Request("POST", PATH, headers, too_large=True)).status == 413, "it was not read"
    assert (replies[1].status, dict(replies[1].headers)["x-amzn-errortype"]) == (
        413,
        "RequestTooLargeException",
    )
