from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.issuer.grants import register
from mcp_roundtrip_tools.run.issuer.issuer import User
from mcp_roundtrip_tools.run.issuer.server import serve_issuer
from support import browser

pytest_plugins = ["support.browser"]

PROGRAM = Path(browser.__file__).with_name("sign_in_page.mjs")


def test_a_user_signs_in_with_the_keyboard_on_a_narrow_screen(run_in_browser):
    """The policy of the page must allow the redirect to the client, which browsers apply it to."""
    page = Response(200, (("content-type", "text/html"),), b'<link rel="icon" href="data:,">signed in')
    with (
        closing(HttpServer(lambda request: page, max_body=0).start()) as client,
        serve_issuer([User("ada")], lambda: "http://127.0.0.1:3000/mcp") as issuer,
    ):
        redirect = f"{client.url}/callback"
        request = {
            "response_type": "code",
            "client_id": register({"client_name": "Test", "redirect_uris": [redirect]}).id,
            "redirect_uri": redirect,
            "scope": "db:read",
            "code_challenge": "c" * 43,
            "code_challenge_method": "S256",
        }
        url = f"{issuer.url}/authorize?{urlencode(request)}"
        seen = run_in_browser(PROGRAM, {"url": url, "redirect": redirect})
    assert {"code", "iss"} == parse_qs(urlsplit(seen["end"]).query).keys()
    assert (seen["violations"], seen["complaints"], seen["width"]) == ([], [], 320)
