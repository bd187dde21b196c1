import pytest

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.aws_endpoint import Credentials

KEY = Credentials.random()
SIGNED = f"AWS4-HMAC-SHA256 Credential={KEY.access_key_id}/20260101/us-east-1/kms/aws4_request, Signature=0"


def status(*headers):
    return KEY.guard(lambda request: Response(200))(Request("POST", "/", headers)).status


def test_a_request_signed_with_the_key_of_the_run_is_accepted():
    assert status(("authorization", SIGNED)) == 200


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", SIGNED.replace(KEY.access_key_id, "AKIDEXAMPLE"))],
        [("authorization", f"Bearer Credential={KEY.access_key_id}/")],
        [("authorization", SIGNED), ("origin", "http://127.0.0.1")],
        [("authorization", SIGNED), ("sec-fetch-site", "same-origin")],
    ],
)
def test_every_other_request_is_refused(headers):
    assert status(*headers) == 403


def test_keys_differ_from_run_to_run():
    assert len({Credentials.random().access_key_id for _ in range(100)}) == 100
