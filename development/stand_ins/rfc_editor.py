"""A stand-in for the RFC Editor's site, with the beginning of one RFC in other words.

Source: https://www.rfc-editor.org/rfc/rfc9110.txt.
"""

from __future__ import annotations

from mcp_roundtrip_testing.serving import Request, Response

RFC_9110 = """\
Internet Engineering Task Force (IETF)
Request for Comments: 9110

                             HTTP Semantics

Abstract

   HTTP is a stateless protocol for information systems that are distributed. This document describes the
   architecture of HTTP, its terminology, and the aspects that all versions of the protocol share. These are
   the methods of requests, the status codes of responses, the fields of both, and the negotiation of content.
   Each version of HTTP has a document of its own, which describes how messages are sent.
"""


def respond(request: Request) -> Response:
    """Answer a request for the text of an RFC."""
    if (request.method, request.target) == ("GET", "/rfc/rfc9110.txt"):
        return Response(200, (("content-type", "text/plain; charset=utf-8"),), RFC_9110.encode())
    return Response(404, (("content-type", "text/html"),), b"Not Found")
