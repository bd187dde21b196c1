"""The headers of every response of the console."""

from __future__ import annotations

from typing import Final

from mcp_roundtrip_tools.run.http.messages import Response

SECURITY_HEADERS: Final = (
    (
        "content-security-policy",
        # No inline script or style, no other origin, no frame. Results may hold images and audio.
        "default-src 'self'; img-src 'self' data: blob:; media-src 'self' data: blob:; base-uri 'none'; "
        "form-action 'self'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    # A page of another site can neither load a file nor keep a reference to the console's window.
    ("cross-origin-resource-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
)


def with_security_headers(response: Response) -> Response:
    """Return the response with the headers of the console."""
    return Response(response.status, (*response.headers, *SECURITY_HEADERS), response.body)
