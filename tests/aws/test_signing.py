"""Signature Version 4: the vectors of AWS's test suite, and botocore as the oracle for any request.

VECTORS lists requests and signatures of the aws-signing-test-suite in awslabs/aws-c-auth (Copyright
Amazon.com, Inc. or its affiliates, Apache License 2.0). Left out are requests that the clients do not send:
other methods than POST, queries, paths to normalize, and repeated headers.
"""

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import botocore.auth
import pytest
from botocore.auth import SIGNED_HEADERS_BLACKLIST, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.aws.signing import AwsCredentials, sign

KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()

LONG_SESSION_TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD"
    "8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6"
    "q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJa"
    "bIQwj2ICCR/oLxBA=="
)

FORM = b"Param1=value1"
FORM_HEADERS = (
    ("Content-Length", "13"),
    ("X-Amz-Content-Sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"),
)

VECTORS = {
    # name: headers besides Host, session token, body, signature
    "post-vanilla": (*((), None, b""), "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
    "post-header-key-sort": (
        *((("My-Header1", "value1"),), None, b""),
        "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
    ),
    "post-header-value-case": (
        *((("My-Header1", "VALUE1"),), None, b""),
        "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
    ),
    "post-sts-header-before": (
        *((), LONG_SESSION_TOKEN, b""),
        "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    ),
    "post-x-www-form-urlencoded": (
        *((("Content-Type", "application/x-www-form-urlencoded"), *FORM_HEADERS), None, FORM),
        "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
    ),
    "post-x-www-form-urlencoded-parameters": (
        (("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), *FORM_HEADERS),
        *(None, FORM),
        "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422",
    ),
}


@pytest.mark.parametrize(("headers", "token", "body", "signature"), VECTORS.values(), ids=VECTORS)
def test_a_request_of_the_test_suite_gets_its_signature(headers, token, body, signature):
    credentials, all_headers = AwsCredentials(*KEYS, token), (("Host", "example.amazonaws.com"), *headers)
    place: Any = {"region": "us-east-1", "service": "service", "at": AT}
    signed = dict(sign("/", all_headers, body, credentials=credentials, **place))
    assert signed["Authorization"].rpartition("=")[2] == signature
    assert signed.get("X-Amz-Security-Token") == token
    assert signed["X-Amz-Date"] == "20150830T123600Z"


# any request: the same header as botocore's

segments = st.text("aZ09-_~%20!$&'()*+,;=:@ é世", min_size=1, max_size=6)
paths = st.lists(segments, max_size=6).map(lambda found: "/" + "/".join(found))
OTHER_NAMES = {*SIGNED_HEADERS_BLACKLIST, "host", "authorization", "date"}
header_names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True).filter(
    lambda name: name.lower() not in OTHER_NAMES and not name.lower().startswith("x-amz-")
)
header_values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
names = st.from_regex(r"[a-z][a-z0-9-]{0,15}", fullmatch=True)
keys = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


@given(
    path=paths,
    headers=st.lists(
        st.tuples(header_names, header_values), max_size=5, unique_by=lambda each: each[0].lower()
    ),
    body=st.binary(max_size=100),
    parts=st.tuples(keys, keys, st.none() | keys),
    region=names,
    service=names,
    at=st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
def test_botocore_computes_the_same_authorization(path, headers, body, parts, region, service, at):
    headers = (("Host", "service.test"), *headers)
    request = AWSRequest("POST", f"https://service.test{path}", data=body)
    for name, value in headers:
        request.headers[name] = value
    with patch.object(botocore.auth, "get_current_datetime", lambda: at):
        SigV4Auth(Credentials(*parts), service, region).add_auth(request)
    place: Any = {"region": region, "service": service, "at": at.timestamp()}
    signed = dict(sign(path, headers, body, credentials=AwsCredentials(*parts), **place))
    assert signed == {name: request.headers[name] for name in signed}
    assert signed.keys() == {"X-Amz-Date", "Authorization", *(["X-Amz-Security-Token"] if parts[2] else [])}
