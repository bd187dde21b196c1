"""One endpoint for all emulated AWS services, the value of AWS_ENDPOINT_URL.

The signature of a request names its service (AWS Signature Version 4, "credential scope").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.services.credentials import Respond, signing_scope


@dataclass(frozen=True, slots=True)
class AwsService:
    """An emulated service. A request with a body over `max_body` bytes reaches it as `too_large`."""

    respond: Respond
    max_body: int


@dataclass(frozen=True, slots=True)
class AwsEndpoint:
    """Leads each request to the service that it is signed for; `others` answers for all other services.

    `services` are keyed by the service's name in signatures.
    """

    services: Mapping[str, AwsService]
    others: Respond

    @property
    def max_body(self) -> int:
        """The largest body that one of the services accepts, in bytes."""
        return max(service.max_body for service in self.services.values())

    def respond(self, request: Request) -> Response:
        """Answer one request."""
        service = self.services.get(signing_scope(request) or "")
        if service is None:
            return self.others(request)
        if len(request.body) > service.max_body:
            return service.respond(replace(request, body=b"", too_large=True))
        return service.respond(request)
