"""RFCs as text, from the RFC Editor (https://www.rfc-editor.org)."""

import os
import re

from mcp_roundtrip import ToolError

SITE = "https://www.rfc-editor.org"
TIMEOUT_S = 5
MAX_BYTES = 20_000  # the result of a step travels in requestState, which takes 64 KiB

DOCUMENT = re.compile(rf"{re.escape(SITE)}/rfc/(rfc[1-9][0-9]{{0,4}})(?:\.txt)?")


class Unavailable(Exception):
    """The site timed out, is overloaded or failed; a later attempt may succeed."""


def fetch(uri: str) -> str:
    """Return the beginning of an RFC. Raises ToolError for any other URI, and Unavailable.

    The URI comes from a model. It cannot lead to another host or path (SSRF): only the RFC's name is used,
    and redirects are not followed.
    """
    from urllib.error import HTTPError
    from urllib.request import (
        HTTPRedirectHandler,
        build_opener,
    )  # HTTP and TLS take 40 ms; lists need neither

    class NoRedirects(HTTPRedirectHandler):
        def redirect_request(self, *_: object) -> None:
            return None

    document = DOCUMENT.fullmatch(uri)
    if document is None:
        raise ToolError(f"Pass the document's text, or the URI of an RFC such as {SITE}/rfc/rfc9110.txt.")
    site = os.environ.get("RFC_EDITOR_URL", SITE)  # a stand-in under `make run`
    try:
        with build_opener(NoRedirects).open(f"{site}/rfc/{document[1]}.txt", timeout=TIMEOUT_S) as response:
            content: bytes = response.read(MAX_BYTES)
    except HTTPError as error:
        error.close()
        if error.code == 404:
            raise ToolError(f"There is no {document[1]}.") from None
        raise Unavailable(f"status {error.code}") from None
    except OSError as error:
        raise Unavailable(str(error)) from error
    return content.decode(errors="ignore")
