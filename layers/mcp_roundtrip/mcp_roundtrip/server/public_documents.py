"""The documents of an endpoint that need no authorization: question page, Server Card, resource metadata."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from mcp_roundtrip.auth.callers import InsufficientScope, Unauthorized
from mcp_roundtrip.auth.protected_resource import ProtectedResource
from mcp_roundtrip.deployment.ports import Ports
from mcp_roundtrip.protocol.http import HttpRequest, HttpResponse
from mcp_roundtrip.server.invocation import Operation
from mcp_roundtrip.server.options import ServerOptions
from mcp_roundtrip.server.resource_metadata import challenge_headers, metadata_response
from mcp_roundtrip.server.responses import log_fault


class PublicDocuments(Struct, frozen=True):
    """The documents of one endpoint; `name`, `scopes` and `options` are the endpoint's."""

    ports: Ports
    name: str | None
    scopes: Sequence[str]
    options: ServerOptions | None
    serves_legacy: bool

    def respond(self, request: HttpRequest, operation: Operation | None) -> HttpResponse | None:
        """Respond to a request for a document; return None for any other request.

        `operation` is the audited operation, if there are audit records.
        """
        return (
            self._question_page(request, operation)
            or self._server_card(request)
            or self._resource_metadata(request)
        )

    def challenge(self, refusal: Unauthorized | InsufficientScope) -> dict[str, str]:
        """Return the header that leads a refused client to the metadata; none if there is no metadata."""
        metadata = self._metadata()
        return {} if metadata is None else challenge_headers(refusal, metadata)

    def _question_page(self, request: HttpRequest, operation: Operation | None) -> HttpResponse | None:
        if not (self.ports.config.has_task_table and request.path.endswith("/questions")):
            return None
        from mcp_roundtrip.server import question_page  # browsers need it

        if not question_page.is_question_page(request, self.ports.config.audience()):
            return None
        try:
            return question_page.respond(request, self.ports, self.name or "", operation)
        except Exception as error:  # its visitor is a person, not an MCP client
            log_fault(self.ports.observer, error)
            return question_page.failure_response(request, self.ports)

    def _server_card(self, request: HttpRequest) -> HttpResponse | None:
        card_name = self.ports.config.server_card
        if card_name is None or self.options is None or not request.path.endswith("/server-card"):
            return None
        from mcp_roundtrip.server import server_card  # clients cache it

        uri = self.ports.config.audience()
        if not server_card.is_server_card(request, uri):
            return None
        card = server_card.make_card(card_name, self.options, uri, serves_legacy=self.serves_legacy)
        response = server_card.card_response(request, card)
        self.ports.observer.record("request_completed", outcome="server_card", status=response.status)
        return response

    def _resource_metadata(self, request: HttpRequest) -> HttpResponse | None:
        metadata = self._metadata()
        if metadata is None or request.path not in metadata.paths:
            return None
        response = metadata_response(request.method, metadata)
        if response is not None:
            self.ports.observer.record("request_completed", outcome="metadata")
        return response

    def _metadata(self) -> ProtectedResource | None:
        """Return the metadata of the endpoint; None if no authorization server is known."""
        config = self.ports.config
        if config.authorization_server is None:
            return None
        servers = (config.authorization_server,)
        return ProtectedResource(config.audience(), servers, self.scopes, self.name, config.scope_prefix)
