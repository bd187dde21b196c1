"""Edited copies of the code of functions."""

import pytest

from mcp_roundtrip_tools.run.edited_sources import (
    MAX_FILE,
    MAX_FILES,
    EditedSources,
    SourceError,
    source_files,
)
from mcp_roundtrip_tools.template.model import Function


@pytest.fixture
def code(tmp_path):
    folder = tmp_path / "project/weather"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text("VERSION = 1\n")
    (folder / "data.json").write_text("{}")
    return folder


@pytest.fixture
def edited(tmp_path):
    return EditedSources(tmp_path / "copies")


def functions(code):
    return {
        name: Function(name, "app.handler", code, (), {}, timeout_s=3, memory_mb=128)
        for name in ("weather", "weather_worker")
    }


def test_an_edited_copy_runs_instead_of_the_project_which_stays_as_it_is(code, edited):
    assert edited.apply_to(functions(code))["weather"].code == code
    edited.edit("weather", {"app.py": "VERSION = 2\n", "more/part.py": "A = 1\n"})
    for function in edited.apply_to(functions(code)).values():  # the worker has the same code
        assert (function.code / "app.py").read_text() == "VERSION = 2\n"
        assert (function.code / "more/part.py").is_file()
        assert (function.code / "data.json").read_text() == "{}"
    edited.edit("weather", {"app.py": "VERSION = 3\n"})
    assert (function.code / "app.py").read_text() == "VERSION = 2\n"  # processes of this version keep it
    assert source_files(code) == {"app.py": "VERSION = 1\n", "data.json": "{}"}
    assert edited.sharing("weather") == ["weather", "weather_worker"]
    edited.edit("weather_worker", {})
    assert edited.apply_to(functions(code))["weather"].code == code


@pytest.mark.parametrize(
    "name",
    [
        *("../app.py", "a/../../app.py", "/etc/app.py", "a//b.py", "./app.py", ".hidden.py", "a/.git/x.py"),
        *("app.py/", "", "a\\..\\b.py", "a\x00.py", "a\n.py", "a b.py", "app.sh", "app", "app.pyc", "app.so"),
        *("C:app.py", "~/app.py", "é.py", "/".join("a" * 9) + ".py", "requirements.txt"),
    ],
)
def test_a_name_cannot_leave_the_copy_or_be_another_kind_of_file(name, code, edited):
    edited.apply_to(functions(code))
    with pytest.raises(SourceError):
        edited.edit("weather", {name: ""})
    assert edited.files("weather") == {}


@pytest.mark.parametrize(
    "text", ["def f(:\n", "\x00", "'\ud800'", "x" * (MAX_FILE + 1), "(" * 500, "x = " + "-" * 200_000 + "1"]
)
def test_a_file_that_cannot_run_is_refused_and_the_previous_version_stays(text, code, edited):
    edited.apply_to(functions(code))
    edited.edit("weather", {"app.py": "VERSION = 2\n"})
    with pytest.raises(SourceError, match=r"app\.py"):
        edited.edit("weather", {"app.py": text})
    assert edited.files("weather") == {"app.py": "VERSION = 2\n"}


def test_the_number_of_edited_files_is_limited(code, edited):
    edited.apply_to(functions(code))
    with pytest.raises(SourceError):
        edited.edit("weather", {f"a{number}.py": "" for number in range(MAX_FILES + 1)})


def test_hidden_large_binary_and_outside_files_are_not_shown(code, tmp_path):
    outside = tmp_path / "secret.py"
    outside.write_text("SECRET = 1")
    (code / "linked.py").symlink_to(outside)
    (code / "folder").symlink_to(tmp_path)
    (code / ".env.py").write_text("SECRET = 1")
    (code / "large.py").write_text("#" * (MAX_FILE + 1))
    (code / "binary.py").write_bytes(b"\xff\xfe")
    assert list(source_files(code)) == ["app.py", "data.json"]
