"""Signature Version 4: the vectors of AWS's test suite, and botocore as the oracle for any request.

VECTORS lists requests and signatures of the aws-signing-test-suite in awslabs/aws-c-auth (Copyright
Amazon.com, Inc. or its affiliates, Apache License 2.0). Left out are the variants without normalization of
the path, which only S3 uses, and requests that equal one of the table.
"""

from datetime import UTC, datetime
from unittest.mock import patch

import botocore.auth
import pytest
from botocore.auth import SIGNED_HEADERS_BLACKLIST, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.aws.signing import AwsCredentials, canonical_request, sign

KEYS = ("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
AT = datetime(2015, 8, 30, 12, 36, tzinfo=UTC).timestamp()

SESSION_TOKEN = "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267"
LONG_SESSION_TOKEN = (
    "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD"
    "8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6"
    "q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJa"
    "bIQwj2ICCR/oLxBA=="
)
UNRESERVED = "-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

FORM = b"Param1=value1"
FORM_HEADERS = (
    ("Content-Length", "13"),
    ("X-Amz-Content-Sha256", "9095672bbd1f56dfc5b65f3e153adc8731a4a654192329106275f4c7b24d0b6e"),
)

GET, POST = "GET", "POST"
VANILLA = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"

VECTORS = {
    # name: method, path, query, headers besides Host, session token, body, signature
    "get-vanilla": (GET, "/", "", (), None, b"", VANILLA),
    "get-relative-normalized": (GET, "/example/..", "", (), None, b"", VANILLA),
    "get-relative-relative-normalized": (GET, "/example1/example2/../..", "", (), None, b"", VANILLA),
    "get-slash-dot-slash-normalized": (GET, "/./", "", (), None, b"", VANILLA),
    "get-slash-normalized": (GET, "//", "", (), None, b"", VANILLA),
    "get-slash-pointless-dot-normalized": (
        *(GET, "/./example", "", (), None, b""),
        "ef75d96142cf21edca26f06005da7988e4f8dc83a165a80865db7089db637ec5",
    ),
    "get-slashes-normalized": (
        *(GET, "//example//", "", (), None, b""),
        "9a624bd73a37c9a373b5312afbebe7a714a789de108f0bdfe846570885f57e84",
    ),
    "get-space-normalized": (
        *(GET, "/example space/", "", (), None, b""),
        "652487583200325589f1fba4c7e578f72c47cb61beeca81406b39ddec1366741",
    ),
    "get-unreserved": (
        *(GET, f"/{UNRESERVED}", "", (), None, b""),
        "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f",
    ),
    "get-utf8": (
        *(GET, "/\u1234", "", (), None, b""),
        "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85",
    ),
    "get-vanilla-empty-query-key": (
        *(GET, "/", "Param1=value1", (), None, b""),
        "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
    ),
    "get-vanilla-query-order-encoded": (
        *(GET, "/", "Param-3=Value3&Param=Value2&%E1%88%B4=Value1", (), None, b""),
        "371d3713e185cc334048618a97f809c9ffe339c62934c032af5a0e595648fcac",
    ),
    "get-vanilla-query-order-key-case": (
        *(GET, "/", "Param2=value2&Param1=value1", (), None, b""),
        "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
    ),
    "get-vanilla-query-unreserved": (
        *(GET, "/", f"{UNRESERVED}={UNRESERVED}", (), None, b""),
        "9c3e54bfcdf0b19771a7f523ee5669cdf59bc7cc0884027167c21bb143a40197",
    ),
    "get-vanilla-utf8-query": (
        *(GET, "/", "%E1%88%B4=bar", (), None, b""),
        "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04",
    ),
    "get-header-key-duplicate": (
        *(GET, "/", ""),
        (("My-Header1", "value2"), ("My-Header1", "value2"), ("My-Header1", "value1")),
        *(None, b""),
        "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea",
    ),
    "get-header-value-multiline": (
        *(GET, "/", "", (("My-Header1", "value1\n  value2\n     value3"),), None, b""),
        "cfd34249e4b1c8d6b91ef74165d41a32e5fab3306300901bb65a51a73575eefd",
    ),
    "get-header-value-order": (
        *(GET, "/", ""),
        tuple(("My-Header1", f"value{number}") for number in (4, 1, 3, 2)),
        *(None, b""),
        "08c7e5a9acfcfeb3ab6b2185e75ce8b1deb5e634ec47601a50643f830c755c01",
    ),
    "get-header-value-trim": (
        *(GET, "/", "", (("My-Header1", " value1"), ("My-Header2", ' "a   b   c"')), None, b""),
        "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736",
    ),
    "get-vanilla-with-session-token": (
        *(GET, "/", "", (), SESSION_TOKEN, b""),
        "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8",
    ),
    "post-vanilla": (
        *(POST, "/", "", (), None, b""),
        "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
    ),
    "post-header-key-sort": (
        *(POST, "/", "", (("My-Header1", "value1"),), None, b""),
        "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
    ),
    "post-header-value-case": (
        *(POST, "/", "", (("My-Header1", "VALUE1"),), None, b""),
        "cdbc9802e29d2942e5e10b5bccfdd67c5f22c7c4e8ae67b53629efa58b974b7d",
    ),
    "post-sts-header-before": (
        *(POST, "/", "", (), LONG_SESSION_TOKEN, b""),
        "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
    ),
    "post-vanilla-query": (
        *(POST, "/", "Param1=value1", (), None, b""),
        "28038455d6de14eafc1f9222cf5aa6f1a96197d7deb8263271d420d138af7f11",
    ),
    "post-x-www-form-urlencoded": (
        *(POST, "/", "", (("Content-Type", "application/x-www-form-urlencoded"), *FORM_HEADERS), None, FORM),
        "d3875051da38690788ef43de4db0d8f280229d82040bfac253562e56c3f20e0b",
    ),
    "post-x-www-form-urlencoded-parameters": (
        *(POST, "/", ""),
        (("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"), *FORM_HEADERS),
        *(None, FORM),
        "328d1b9eaadca9f5818ef05e8392801e091653bafec24fcab71e7344e7f51422",
    ),
}


@pytest.mark.parametrize(
    ("method", "path", "query", "headers", "token", "body", "signature"), VECTORS.values(), ids=VECTORS
)
def test_a_request_of_the_test_suite_gets_its_signature(method, path, query, headers, token, body, signature):
    signed = dict(
        sign(
            method,
            path,
            query,
            (("Host", "example.amazonaws.com"), *headers),
            body,
            credentials=AwsCredentials(*KEYS, token),
            region="us-east-1",
            service="service",
            at=AT,
        )
    )
    assert signed["Authorization"].rpartition("=")[2] == signature
    assert signed.get("X-Amz-Security-Token") == token
    assert signed["X-Amz-Date"] == "20150830T123600Z"


def test_the_canonical_request_is_that_of_the_documentation():
    """IAM User Guide, "Create a signed AWS API request": the elements of a canonical request."""
    headers = (
        ("Host", "example.amazonaws.com"),
        ("My-Header", " a   b "),
        ("X-Amz-Date", "20150830T123600Z"),
    )
    request, names = canonical_request(GET, "/a b", "b=2&a=1", headers, b"")
    assert names == "host;my-header;x-amz-date"
    assert request.split("\n") == [
        "GET",
        "/a%20b",
        "a=1&b=2",
        "host:example.amazonaws.com",
        "my-header:a b",
        "x-amz-date:20150830T123600Z",
        "",
        "host;my-header;x-amz-date",
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    ]


# any request: the same header as botocore's

segments = st.one_of(st.sampled_from(["", ".", ".."]), st.text("aZ09-._~%20!$&'()*+,;=:@ é世", max_size=6))
paths = st.lists(segments, max_size=6).map(lambda found: "/" + "/".join(found))
queries = st.lists(st.text("abAB019-._~%+=", min_size=1, max_size=6), max_size=5).map("&".join)
header_names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True).filter(
    lambda name: (
        name.lower() not in {*SIGNED_HEADERS_BLACKLIST, "host", "x-amz-content-sha256"}
        and name.lower() not in {"authorization", "date", "x-amz-date", "x-amz-security-token"}
    )
)
header_values = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=20)
names = st.from_regex(r"[a-z][a-z0-9-]{0,15}", fullmatch=True)
keys = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


@given(
    method=st.sampled_from(["GET", "POST", "PUT", "DELETE"]),
    path=paths,
    query=queries,
    headers=st.lists(st.tuples(header_names, header_values), max_size=5),
    body=st.binary(max_size=100),
    access_key=keys,
    secret_key=keys,
    token=st.none() | keys,
    region=names,
    service=names,
    at=st.datetimes(datetime(1980, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),
)
def test_botocore_computes_the_same_authorization(
    method, path, query, headers, body, access_key, secret_key, token, region, service, at
):
    url = "https://service.test" + path + (f"?{query}" if query else "")
    request = AWSRequest(method, url, data=body)
    for name, value in (("Host", "service.test"), *headers):
        request.headers[name] = value  # adds another value
    credentials = Credentials(access_key, secret_key, token)
    with patch.object(botocore.auth, "get_current_datetime", lambda: at):
        SigV4Auth(credentials, service, region).add_auth(request)
    signed = dict(
        sign(
            method,
            path,
            query,
            (("Host", "service.test"), *headers),
            body,
            credentials=AwsCredentials(access_key, secret_key, token),
            region=region,
            service=service,
            at=at.timestamp(),
        )
    )
    assert signed == {name: request.headers[name] for name in signed}
    assert signed.keys() == {"X-Amz-Date", "Authorization", *(["X-Amz-Security-Token"] if token else [])}


def test_credentials_do_not_show_their_secrets():
    credentials = AwsCredentials("AKID", "very secret", "token")
    assert "secret" not in f"{credentials!r} {credentials}"
    assert "AKID" not in f"{credentials!r} {credentials}"
