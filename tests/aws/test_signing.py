"""Signature Version 4, with botocore as the oracle for any request."""

from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import botocore.auth
from botocore.auth import SIGNED_HEADERS_BLACKLIST, SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.aws.credentials import AwsCredentials
from mcp_roundtrip.aws.signed_client import sign

segments = st.text("aZ09-_~%20!$&'()*+,;=:@ é世", min_size=1, max_size=6)
paths = st.lists(segments, max_size=6).map(lambda found: "/" + "/".join(found))
OTHER_NAMES = {*SIGNED_HEADERS_BLACKLIST, "host", "authorization", "date"}
header_names = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True).filter(
    lambda name: name.lower() not in OTHER_NAMES and not name.lower().startswith("x-amz-")
)
printable = st.characters(min_codepoint=32, max_codepoint=126)
header_values = st.text(printable, max_size=20) | st.text("a ", max_size=9)
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
