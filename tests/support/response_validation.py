"""A pytest plugin that validates every response of an endpoint with the official models.

Each result has to name its server, as basic/index recommends ("Per-response protocol fields"). Responses to
legacy clients are excluded, because their tests have their own models, and so are questions outside the
specification (namespaced requests).
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from mcp_roundtrip.protocol.constants import META_PROTOCOL_VERSION, META_SERVER_INFO, PROTOCOL_VERSION
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.endpoint import Endpoint
from mcp_roundtrip_testing.http_requests import read_messages
from support.extension_schemas import assert_valid

STANDARD = {"elicitation/create", "sampling/createMessage", "roots/list"}


@pytest.fixture(autouse=True, scope="session")
def every_response_is_valid() -> Iterator[None]:
    """Make `Endpoint.respond` raise for every invalid response."""
    respond = Endpoint.respond

    def checked(self: Endpoint, request: HttpRequest, *rest: Any) -> HttpResponse:
        response = respond(self, request, *rest)
        method = _method(request)
        if method is not None and response.raw is None and response.body:
            for message in read_messages(response):
                assert "result" not in message or META_SERVER_INFO in message["result"]["_meta"]
                if not _is_beyond_the_specification(message):
                    # A response to an unreadable request has no id, but the models require one.
                    assert_valid(method, message if "method" in message else {"id": 0, **message})
        return response

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Endpoint, "respond", checked)
        yield


def _method(request: HttpRequest) -> str | None:
    try:
        message = json.loads(request.body or b"")
        version = message["params"]["_meta"][META_PROTOCOL_VERSION]
    except (ValueError, LookupError, TypeError):
        return None
    return (
        message["method"] if version == PROTOCOL_VERSION and isinstance(message.get("method"), str) else None
    )


def _is_beyond_the_specification(message: Mapping[str, Any]) -> bool:
    requests = message.get("result", {}).get("inputRequests", {})
    return any(request["method"] not in STANDARD for request in requests.values())
