"""moto for requests of clients other than botocore, which moto does not intercept."""

from __future__ import annotations

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.botocore_stubber import BotocoreStubber

from mcp_roundtrip_tools.run.http.messages import Request, Response
from support.aws_clients import REGION


def answer(service: str, request: Request) -> Response:
    """Return what a service of moto answers, whose `mock_aws` is active."""
    headers = HTTPHeaders()
    for name, value in request.headers:
        headers[name] = value
    url = f"https://{service}.{REGION}.amazonaws.com{request.target}"
    prepared = AWSPreparedRequest(request.method, url, headers, request.body, False)
    answered = BotocoreStubber().process_request(prepared)
    assert answered is not None, url
    status, found, body = answered
    # The server states the length itself.
    sent = tuple((name, str(found[name])) for name in found if name.lower() != "content-length")
    return Response(status, sent, body if isinstance(body, bytes) else body.encode())
