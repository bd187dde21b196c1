"""Connections of other users of the computer."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from mcp_roundtrip_tools.run import LocalApp
from mcp_roundtrip_tools.run.http.peer_users import TABLES, refuse_other_users
from mcp_roundtrip_tools.run.issuer.users import User
from support.sam_applications import write_application
from support.served_application import serve

OTHER = os.getuid() + 1
NOBODY = "65534"
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
ZEROS = "00000000:00000000 00:00000000 00000000"
IPV4 = "0100007F"
MAPPED = "0000000000000000FFFF00000100007F"

needs_linux = pytest.mark.skipif(not TABLES[0].exists(), reason="needs Linux")

Row = tuple[str, int, int, int]
"""Address, port, user id and inode."""


def refused(folder: Path, *rows: Row) -> bool:
    lines = [
        f"  {number}: {ip}:{port:04X} {IPV4}:0BB8 01 {ZEROS} {uid:5} 0 {inode}"
        for number, (ip, port, uid, inode) in enumerate(rows)
    ]
    table = folder / "tcp"
    table.write_text("\n".join([HEADER, *lines]))
    return refuse_other_users("127.0.0.1", 40_000, [table]) is not None


@pytest.mark.parametrize("ip", [IPV4, MAPPED])
def test_the_owner_of_the_client_s_socket_decides(tmp_path: Path, ip: str) -> None:
    def owned_by(uid: int) -> Sequence[Row]:
        return ((ip, 40_001, OTHER, 7), (ip, 40_000, uid, 8), (ip, 4_000, OTHER, 9))

    assert not refused(tmp_path, *owned_by(os.getuid()))
    assert not refused(tmp_path, *owned_by(0))
    assert refused(tmp_path, *owned_by(OTHER))


def test_a_client_that_has_left_is_refused_because_its_owner_is_unknown(tmp_path: Path) -> None:
    assert refused(tmp_path)
    assert refused(tmp_path, (IPV4, 40_000, 0, 0))  # the row of a closed socket shows root


def test_nothing_is_refused_on_a_system_that_does_not_list_owners(tmp_path: Path) -> None:
    assert refuse_other_users("127.0.0.1", 40_000, [tmp_path / "missing"]) is None


@needs_linux
def test_a_client_that_only_waits_for_the_response_is_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            assert refuse_other_users(*client.getsockname()) is None
            client.shutdown(socket.SHUT_WR)
            assert refuse_other_users(*client.getsockname()) is None
        assert refuse_other_users("127.0.0.1", 1) is not None


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalApp]:
    template = """
        Parameters: {AuthMode: {Type: String}, TokenIssuer: {Type: String}}
        Metadata: {LocalRun: {StandIns: {STAND_IN: stand_in.py}}}
        Resources:
          F:
            Type: AWS::Serverless::Function
            Properties:
              Handler: app.handler
              CodeUri: f
              Events: {E: {Type: HttpApi, Properties: {Path: /mcp, Method: POST}}}
        """
    sources = {
        "f/app.py": "def handler(event, context):\n    return 'called'\n",
        "stand_in.py": """
            from mcp_roundtrip_tools.run.http.messages import Response

            def respond(request):
                return Response(200)
            """,
    }
    folder = tmp_path_factory.mktemp("application")
    with serve(write_application(folder, template, sources), users=[User("ada")], log=None) as running:
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


def status(app: LocalApp, sent: str, user: str = "") -> int:
    """Return the status of a request of another process, of this user or of the user id `user`."""
    assert app.issuer is not None
    method, url, body = SENT[sent]
    stand_in = app.environment("F")["STAND_IN"]
    urls = {"endpoint": app.url(), "issuer": app.issuer.url, "console": app.console_url, "stand_in": stand_in}
    parts = urlsplit(url.format(**urls))
    head = f"{method} {parts.path or '/'} HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Length: {len(body)}"
    command = [sys.executable, "-I", "-c", CLIENT, str(parts.port), f"{head}\r\n\r\n{body}", user]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(found.stdout)


@needs_linux
@pytest.mark.parametrize("sent", SENT)
def test_no_server_of_make_run_answers_another_user(
    app: LocalApp, sent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status(app, sent) != 403
    if os.getuid() == 0:
        assert status(app, sent, NOBODY) == 403
    else:  # only root can start a process of another user: here the server is of another one
        monkeypatch.setattr(os, "getuid", lambda: OTHER)
        assert status(app, sent) == 403
