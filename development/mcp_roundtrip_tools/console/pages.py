"""The files of the console's page, as they are in `web/`, and the headers of every response."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from mcp_roundtrip import question_ui
from mcp_roundtrip_tools.run.http.messages import Response, error_response

WEB: Final = Path(__file__).with_name("web")

FORM: Final = Path(question_ui.__file__).with_name("form.js")
"""The form of questions, which the question app has, too."""

INDEX: Final = "index.html"

CONTENT_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""Content type by suffix. Files with other suffixes are not served."""


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


def page_file(name: str) -> Response:
    """Return the file with this name relative to the folder, as it is now; 404 if there is none.

    The name is compared with those of the files and never joined to a path, so it cannot leave the folder.
    """
    files = {
        path.relative_to(WEB).as_posix(): path for path in WEB.rglob("*") if path.suffix in CONTENT_TYPES
    }
    path = {FORM.name: FORM, **files}.get(name)
    if path is None:
        return error_response(404, "the console has no such file")
    return Response(200, (("content-type", CONTENT_TYPES[path.suffix]),), path.read_bytes())


def with_security_headers(response: Response) -> Response:
    """Return the response with the headers of the console."""
    return Response(response.status, (*response.headers, *SECURITY_HEADERS), response.body)
