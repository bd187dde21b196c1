import pytest

from mcp_roundtrip_tools.run.http.browser_protection import refuse_cross_origin
from mcp_roundtrip_tools.run.http.messages import Request

OWN = ("host", "127.0.0.1:3000")


def status(*headers):
    request = Request("POST", "/mcp", (OWN, *headers))
    reply = refuse_cross_origin(request, lambda origin: origin == "https://app.example")
    return reply and reply.status


@pytest.mark.parametrize(
    "headers",
    [
        [("origin", "https://evil.example")],
        [("origin", "null")],
        [("origin", "http://127.0.0.1:8000")],
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")],
        [("sec-fetch-site", "same-site"), ("sec-fetch-mode", "no-cors")],
        [("origin", "null"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
        [("origin", "null"), ("sec-fetch-site", "none")],
    ],
)
def test_requests_from_pages_of_other_origins_are_refused(headers):
    assert status(*headers) == 403


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
        [("origin", "http://127.0.0.1:3000"), ("sec-fetch-site", "same-origin")],
        [("origin", "null"), ("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate")],
        [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")],
        [("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")],
        [("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "no-cors")],
    ],
)
def test_programs_links_own_pages_and_allowed_pages_are_accepted(headers):
    assert status(*headers) is None
