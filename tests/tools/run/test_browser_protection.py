import os
import platform
import socket
import sys
from urllib.parse import urlsplit

import pytest

from mcp_roundtrip_tools.run.http import browser_protection
from mcp_roundtrip_tools.run.http.browser_protection import (
    refuse_cross_origin,
    refuse_other_users,
    socket_owner,
)
from mcp_roundtrip_tools.run.http.messages import Request
from mcp_roundtrip_tools.run.issuer.issuer import User
from support.interpreters import output_of
from support.sam_applications import ONE_FUNCTION, write_application
from support.served_application import serve
from support.skips import LINUX

OTHER = os.getuid() + 1
NOBODY = "65534"
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason=LINUX)


@needs_linux
@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"])
def test_the_owner_of_the_client_s_socket_decides(host, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as server, connected(host, server) as client:
        addresses = ("127.0.0.1", client.getsockname()[1]), server.getsockname()
        assert socket_owner(*addresses) == os.getuid()
        assert refuse_other_users(*addresses) is None
        client.shutdown(socket.SHUT_WR)  # it waits for the response
        assert refuse_other_users(*addresses) is None
        monkeypatch.setattr(browser_protection, "socket_owner", lambda *_: OTHER)
        assert refuse_other_users(*addresses) is not None


def connected(host, server):
    client = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    client.connect((host, server.getsockname()[1]))
    return client


@needs_linux
def test_a_client_that_has_left_is_refused_because_its_owner_is_unknown():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with connected("127.0.0.1", server) as client:
            left = client.getsockname()
        for address in (left, ("127.0.0.1", 1)):
            assert socket_owner(address, server.getsockname()) is None
            assert refuse_other_users(address, server.getsockname()) is not None


def test_nothing_is_refused_on_a_system_that_does_not_tell_owners(monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    address = ("127.0.0.1", 1)
    monkeypatch.setattr(browser_protection, "socket_owner", refuse)
    assert refuse_other_users(address, address) is None
    monkeypatch.undo()
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    assert refuse_other_users(address, address) is None


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    posted = ONE_FUNCTION.replace("Path: $default, Method: ANY", "Path: /mcp, Method: POST")
    template = f"""
    Parameters: {{AuthMode: {{Type: String}}, TokenIssuer: {{Type: String}}}}
    Metadata: {{LocalRun: {{StandIns: {{STAND_IN: stand_in.py}}}}}}{posted}"""
    sources = {
        "f/app.py": "def handler(event, context):\n    return 'called'\n",
        "stand_in.py": """
            from mcp_roundtrip_tools.run.http.messages import Response

            def respond(request):
                return Response(200)
            """,
    }
    folder = tmp_path_factory.mktemp("application")
    with serve(write_application(folder, template, sources), users=[User("ada")]) as running:
        yield running


SENT = {
    "the endpoint": ("POST", "{endpoint}", "{}"),
    "a path without a route": ("GET", "{endpoint}/other", ""),
    "the metadata of the issuer": ("GET", "{issuer}/.well-known/openid-configuration", ""),
    "a token": ("POST", "{issuer}/token", "grant_type=urn:mcp-roundtrip:grant-type:local-user"),
    "a registration": ("POST", "{issuer}/register", "{}"),
    "the sign-in page": ("GET", "{issuer}/authorize", ""),
    "the page of the console": ("GET", "{console}", ""),
    "the API of the console": ("GET", "{console}console/api/application", ""),
    "a stand-in": ("GET", "{stand_in}", ""),
}

CLIENT = """
import os, socket, sys
port, request, user = sys.argv[1:]
if user:
    os.setuid(int(user))
connection = socket.socket()
connection.connect(("127.0.0.1", int(port)))
connection.sendall(request.encode())
print(connection.recv(65_536).split()[1].decode())
"""
"""Imports nothing after `setuid`: the other user may not be allowed to read the interpreter's files."""


def status(app, sent, user=""):
    """Return the status of a request of another process, of this user or of the user id `user`."""
    assert app.issuer is not None
    method, url, body = SENT[sent]
    stand_in = app.function_variables("F")["STAND_IN"]
    urls = {"endpoint": app.url(), "issuer": app.issuer.url, "console": app.console_url, "stand_in": stand_in}
    parts = urlsplit(url.format(**urls))
    head = f"{method} {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(body)}"
    command = [sys.executable, "-I", "-c", CLIENT, str(parts.port), f"{head}\r\n\r\n{body}", user]
    return int(output_of(*command))


@needs_linux
@pytest.mark.parametrize("sent", SENT)
def test_no_server_of_make_run_answers_another_user(app, sent, monkeypatch):
    assert status(app, sent) != 403
    if os.getuid() == 0:
        assert status(app, sent, NOBODY) == 403
    else:  # only root can start a process of another user: here the server is of another one
        monkeypatch.setattr(os, "getuid", lambda: OTHER)
        assert status(app, sent) == 403


OWN = ("host", "127.0.0.1:3000")


@pytest.mark.parametrize(
    ("origin", "site", "mode", "status"),
    [
        ("https://evil.example", "", "", 403),
        ("null", "", "", 403),
        ("http://127.0.0.1:8000", "", "", 403),
        ("", "cross-site", "no-cors", 403),
        ("", "same-site", "no-cors", 403),
        ("null", "cross-site", "navigate", 403),
        ("null", "none", "", 403),
        ("", "", "", None),
        ("https://app.example", "cross-site", "", None),
        ("http://127.0.0.1:3000", "same-origin", "", None),
        ("null", "same-origin", "navigate", None),
        ("", "cross-site", "navigate", None),
        ("", "none", "navigate", None),
        ("", "same-origin", "no-cors", None),
    ],
)
def test_pages_of_other_origins_are_refused_and_not_programs_links_own_and_allowed_pages(
    origin, site, mode, status
):
    given = (("origin", origin), ("sec-fetch-site", site), ("sec-fetch-mode", mode))
    request = Request("POST", "/mcp", (OWN, *(each for each in given if each[1])))
    reply = refuse_cross_origin(request, lambda origin: origin == "https://app.example")
    assert (reply and reply.status) == status
