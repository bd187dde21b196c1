import io
import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import textwrap
from contextlib import closing
from typing import Any

import httpx2
import jwt
import pytest

from mcp_roundtrip_tools.call import server as sign_in
from mcp_roundtrip_tools.call.command import main
from mcp_roundtrip_tools.call.errors import CallFailed
from mcp_roundtrip_tools.call.terminal import Terminal
from mcp_roundtrip_tools.client.terminal_text import printable_json
from mcp_roundtrip_tools.run.app import LocalApp
from mcp_roundtrip_tools.run.http.messages import Request, Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from mcp_roundtrip_tools.run.issuer.issuer import User
from support.project import ROOT
from support.served_application import TEMPLATE, serve

WEATHER = ("get_weather", "location=Hyderabad")
SINDH = "Hyderabad, Sindh, Pakistan"


@pytest.fixture(scope="module")
def app():
    users = [User("ada"), User("bob", frozenset({"weather:read"}))]
    with serve(TEMPLATE, users=users, log=lambda line: None) as running:
        yield running


class Run:
    """The exit status of a command, what it printed, and what it showed."""

    def __init__(
        self,
        app: LocalApp | None,
        capsys: pytest.CaptureFixture[str],
        *arguments: str,
        entered: str | None = None,
    ) -> None:
        shown = io.StringIO()
        terminal = Terminal(io.StringIO(entered or ""), shown, is_interactive=entered is not None)
        url = "http://127.0.0.1:9/mcp" if app is None else app.url()
        self.status = main(["--url", url, *arguments], terminal=terminal)
        self.printed = capsys.readouterr().out
        self.shown = shown.getvalue()

    @property
    def result(self) -> Any:
        return json.loads(self.printed)


def test_a_result_is_printed_alone(app, capsys):
    run = Run(app, capsys, "get_weather", '{"location": "Tokyo"}')
    assert run.status == 0
    assert run.result["place"] == "Tokyo, Japan"
    as_json = Run(app, capsys, "get_weather", "--args", "location=Tokyo", "--json").result
    assert as_json["structuredContent"]["place"] == "Tokyo, Japan"


def test_a_question_is_answered_with_the_number_or_the_text_of_a_choice(app, capsys):
    for entered in ("9\n2\n", "sindh\n"):
        run = Run(app, capsys, *WEATHER, entered=entered)
        assert run.status == 0
        assert run.result["place"] == SINDH
        assert "get_weather asks place" in run.shown
        assert f"    2  {SINDH}\n" in run.shown
    assert "as ada" in run.shown


def test_a_question_is_declined_or_cancelled(app, capsys):
    for entered, action in {"/d\n": "declined", "/c\n": "cancelled", "": "cancelled"}.items():
        run = Run(app, capsys, *WEATHER, entered=entered)
        assert run.status == 1
        assert f"  {action}\n" in run.shown
        assert "tool error: " in run.shown
        assert run.printed == ""


def test_answers_are_given_for_scripts(app, capsys):
    for answer in (SINDH, {"value": SINDH}, {"action": "accept", "content": {"value": SINDH}}):
        run = Run(app, capsys, *WEATHER, "--answers", json.dumps({"place": answer}))
        assert run.result["place"] == SINDH


def test_a_question_without_an_answer_and_a_terminal_is_named(app, capsys):
    run = Run(app, capsys, *WEATHER)
    assert run.status == 2
    assert "get_weather asks place: " in run.shown
    assert "called Hyderabad" in run.shown
    assert 'ANSWERS=\'{"place": "Hyderabad, Telangana, India"}\'' in run.shown
    refused = Run(app, capsys, *WEATHER, "--answers", '{"place": "Hyderabad"}')
    assert refused.status == 2
    assert "asks place again: " in refused.shown
    assert "ANSWERS=" not in refused.shown
    refused = Run(app, capsys, *WEATHER, "--answers", '{"place": "elsewhere"}')
    assert refused.status == 2
    assert "not accepted" in refused.shown


def test_prompts_for_a_model_and_roots_are_answered_by_hand_or_with_options(app, capsys, tmp_path):
    document = ("summarize", "text=One. Two.", f"uri={(tmp_path / 'notes.md').as_uri()}")
    given = Run(app, capsys, *document, "--sample", "Numbers.", "--root", str(tmp_path)).result
    assert given == {"summary": "Numbers.", "model": "by-hand", "project": tmp_path.name}
    entered = Run(app, capsys, *document, entered="Two\nlines.\n.\nn\n").result
    assert entered == {"summary": "Two\nlines.", "model": "by-hand", "project": None}


def test_the_tools_are_listed_with_their_arguments(app, capsys):
    run = Run(app, capsys)
    assert run.status == 0
    assert "get_weather location=string [month=integer]\n    Get " in run.printed
    assert "provision_database name=string [region=string]\n" in run.printed


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["get_wether"], r"get_weather\?"),
        (["get_weather", "locatoin=Tokyo"], r"location\?"),
        (["get_weather", "Tokyo"], "neither name=value nor"),
        (["get_weather", "{"], "not JSON"),
        (["update_work_item", "workItemId=x"], "workItemId .*whole number"),
        (["get_weather", "--answers", "[]"], "ANSWERS must be"),
        (["get_weather", "--user", "eve"], "ada and bob"),
        (["get_weather", "--url", "https://[x"], "is no valid"),
        (["get_weather", "--url", "http://127.0.0.1:65536/mcp"], "is no valid"),
    ],
)
def test_a_wrong_option_is_named(app, capsys, arguments, text):
    run = Run(app, capsys, *arguments)
    assert (run.status, bool(re.search(text, run.shown))) == (2, True), run.shown


def test_a_refused_request_and_a_refused_token_end_the_command(app, capsys, monkeypatch):
    run = Run(app, capsys, "get_weather")
    assert (run.status, "location" in run.shown) == (1, True)
    monkeypatch.setenv("TOKEN", "a.b.c")
    run = Run(app, capsys, "get_weather")
    assert (run.status, "(401)" in run.shown) == (1, True)


def test_nothing_at_the_url_is_its_own_status(capsys):
    run = Run(None, capsys, *WEATHER)
    assert run.status == 3
    assert "make run" in run.shown


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "SSL_CERT_FILE"])
def test_proxies_and_certificates_of_the_environment_are_not_used_on_this_computer(
    app, capsys, monkeypatch, variable
):
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    assert Run(app, capsys, *WEATHER, "--answers", json.dumps({"place": SINDH})).status == 0


def test_characters_that_change_the_terminal_are_replaced_and_are_escapes_in_json():
    shown = io.StringIO()
    Terminal(io.StringIO(), shown).show("a\x1b]0;title\x07\r\x9b2Jb\nc", "red")
    assert shown.getvalue() == "a\ufffd]0;title\ufffd\ufffd\ufffd2Jb\nc\n"
    value = {"text": "\x1b\x7f\x9b2J\u202e\u2028\ud800é 😀"}
    assert json.loads(printable_json(value)) == value
    assert printable_json(value).isprintable()
    assert "é 😀" in printable_json(value)


def test_a_server_that_is_not_the_one_of_the_local_issuer_gets_no_token(app, capsys, monkeypatch):
    """It names the metadata of make run as its own, and would get a token for make run."""
    posted: list[str] = []

    def respond(request: Request) -> Response:
        posted.append(request.header("authorization") or "none")
        named = f'Bearer resource_metadata="{app.url("/.well-known/oauth-protected-resource/mcp")}"'
        return Response(401, (("www-authenticate", named),))

    with closing(HttpServer(respond, max_body=10_000).start()) as server:
        other = main(["--url", f"{server.url}/mcp"], terminal=Terminal(shown=io.StringIO()))
    assert (other, posted) == (2, ["none"])
    refusal = httpx2.Response(401, headers={"www-authenticate": f'resource_metadata="{app.url("/x")}"'})
    fetched: list[str] = []
    monkeypatch.setattr(sign_in, "request", lambda method, url, *more: fetched.append(url))
    with pytest.raises(CallFailed, match="access token"):
        sign_in.local_token("https://evil.test/mcp", refusal, None, None)
    assert fetched == []


@pytest.mark.parametrize(
    ("path", "resource", "gets_token"),
    [
        ("/", "http://127.0.0.1:3000", True),  # an application of mcp-roundtrip new
        ("/mcp", "http://127.0.0.1:3000", True),
        ("/mcp", "http://127.0.0.1:3000/mcp", True),
        ("/mcp", "http://127.0.0.1:3001", False),
        ("/mcp", "http://127.0.0.1:3000/m", False),
        ("/", "http://127.0.0.1:3000/mcp", False),
    ],
)
def test_a_token_is_for_the_resource_and_the_paths_below_it(path, resource, gets_token, monkeypatch):
    issuer = "http://127.0.0.1:3002"
    documents = {
        "http://127.0.0.1:3000/metadata": {"resource": resource, "authorization_servers": [issuer]},
        f"{issuer}/token": {"access_token": "a token", "user": "ada"},
    }
    monkeypatch.setattr(
        sign_in,
        "request",
        lambda method, url, *more: httpx2.Response(200, json=documents[url]),
    )
    named = {"www-authenticate": 'Bearer resource_metadata="http://127.0.0.1:3000/metadata"'}
    refusal = httpx2.Response(401, headers=named)
    if gets_token:
        assert sign_in.local_token(f"http://localhost:3000{path}", refusal, None, None) == ("a token", "ada")
    else:
        with pytest.raises(CallFailed, match="access token"):
            sign_in.local_token(f"http://localhost:3000{path}", refusal, None, None)


def test_a_token_has_the_scopes_of_the_user_or_the_given_ones_or_none(app):
    refusal = httpx2.post(app.url())
    for scopes, granted in ((None, "weather:read"), ("a b", "a b"), ("", "")):
        token, _ = sign_in.local_token(app.url(), refusal, "bob", scopes)
        assert jwt.decode(token, options={"verify_signature": False})["scope"] == granted


def test_a_user_answers_at_a_real_terminal(app):
    ours, terminal = pty.openpty()
    command = [sys.executable, "-m", "mcp_roundtrip_tools", "call", *WEATHER, "--url", app.url()]
    variables = {**os.environ, "NO_COLOR": "1"}
    process = subprocess.Popen(
        command, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, env=variables
    )
    shown = ""
    try:
        while not shown.endswith("[1-2] > "):
            assert select.select([ours], [], [], 30)[0], f"no question after: {shown}"
            shown += os.read(ours, 4096).decode()
        os.write(ours, b"2\n")
        printed, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert json.loads(printed)["place"] == SINDH
    os.close(ours)
    os.close(terminal)


PAGE = ROOT / "docs/guides/calling-from-the-terminal.md"
OPTIONS = {"TOOL": "", "ARGS": "--args", "ANSWERS": "--answers"}


def test_the_commands_of_the_page_work_and_show_what_it_shows(app, capsys):
    commands = re.findall(r"^ *make call(.*)$", PAGE.read_text(), re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        pairs = [word.split("=", 1) for word in shlex.split(command)]
        arguments = [word for name, value in pairs for word in (OPTIONS[name], value) if word]
        assert Run(app, capsys, *arguments, entered="2\n").status == 0, command
    [shown] = re.findall(r"```text\n(.*?) 2\n *```", PAGE.read_text(), re.DOTALL)
    assert textwrap.dedent(shown) in Run(app, capsys, *WEATHER, entered="2\n").shown
