"""Sources of a function that are edited in the console: shown, run, and refused."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from mcp_roundtrip_tools.run.project import MAX_FILE
from support.project import edit
from support.sam_applications import wait_until
from support.served_console import accept, serve_console


@pytest.fixture
def console(tmp_path):
    """Return the console of an application for one test, which edits it."""
    with serve_console(tmp_path) as console:
        yield console


def test_another_version_of_the_code_answers_the_next_round(console):
    state = console.call().json()["result"]["requestState"]
    shown = console.read("sources/Server")
    assert [file["name"] for file in shown["files"]] == ["app.py", "notes.md"]
    assert sorted(shown["functions"]) == ["Server", "Worker"]
    text = shown["files"][0]["text"].replace("Which size", "How many")
    edited = console.read("sources/Server", {"files": {"app.py": text}}, "PUT")
    assert (edited["isEdited"], edited["edited"]) == (True, ["app.py"])
    answer = console.call(requestState=state, inputResponses={"size": accept("big")}).json()
    assert "How many" in answer["result"]["inputRequests"]["size"]["params"]["message"]
    assert console.api("sources/Server", {"files": {"app.py": "def f(:"}}, "PUT").status == 422
    assert console.read("sources/Server")["isEdited"] is True
    assert console.read("sources/Server", {"files": {}}, "PUT")["isEdited"] is False
    assert "Which size" in console.call().json()["result"]["inputRequests"]["size"]["params"]["message"]
    project = Path(console.app.folder / "server/app.py").read_text()
    assert "How many" not in project


def test_a_change_of_the_project_takes_effect_beside_an_edited_file(console):
    source = console.app.folder / "server/app.py"
    source.with_name("gone.py").symlink_to("nowhere.py")
    assert console.read("sources/Server", {"files": {"notes.md": ""}}, "PUT")["edited"] == ["notes.md"]
    edit(source, "Which size", "What size")
    wait_until(lambda: "What size" in console.call().body.decode())
    assert console.read("sources/Server")["isEdited"] is True


def test_an_edited_file_that_the_project_loses_can_be_edited_further(console):
    assert console.api("sources/Server", {"files": {"notes.md": "1"}}, "PUT").status == 200
    (console.app.folder / "server/notes.md").unlink()
    shown = {file["name"]: file["text"] for file in console.read("sources/Server")["files"]}
    again = {"files": {**shown, "notes.md": "2"}}
    assert console.read("sources/Server", again, "PUT")["edited"] == ["notes.md"]


FILES: Mapping[str, Mapping[str, str]] = {
    **{
        f"the name {name!r}": {name: ""}
        for name in ("../app.py", "new.py", "./app.py", "", "requirements.txt")
    },
    "null": {"app.py": "\x00"},
    "surrogate": {"app.py": "'\ud800'"},
    "deep": {"app.py": "(" * 500},
}


def test_files_that_cannot_be_written_or_run_are_refused(console):
    for reason, files in FILES.items():
        assert console.api("sources/Server", {"files": files}, "PUT").status == 422, reason
        assert console.read("sources/Server")["isEdited"] is False, reason


def test_hidden_large_binary_and_outside_files_are_not_shown(console):
    code = console.app.folder / "server"
    (code / "linked.py").symlink_to(console.app.folder / "template.yaml")
    (code / "folder").symlink_to(console.app.folder)
    (code / ".env.py").write_text("SECRET = 1")
    (code / "large.py").write_text("#" * (MAX_FILE + 1))
    (code / "binary.py").write_bytes(b"\xff\xfe")
    shown = console.read("sources/Server")["files"]
    assert [file["name"] for file in shown] == ["app.py", "notes.md"]
