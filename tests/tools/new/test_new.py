"""``mcp-roundtrip new``: its files, and what it refuses. sam/test_new_application.py runs an application."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from mcp_roundtrip_tools.__main__ import main as command
from mcp_roundtrip_tools.events import main as events
from mcp_roundtrip_tools.new import package_source
from mcp_roundtrip_tools.new.command import MAX_NAME, default_runtime, main, render
from mcp_roundtrip_tools.new.package_source import APPLICATION, package_files
from mcp_roundtrip_tools.template.model import RUNTIMES
from mcp_roundtrip_tools.template.yaml_reader import load, parse
from support.project import ROOT

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
WHEEL = f"mcp_roundtrip-{VERSION}-py3-none-any.whl"

NEW = render("orders", "python3.12", "x86_64")


@pytest.fixture
def origin(monkeypatch):
    """Set the record of where the package was installed from."""
    return lambda record: monkeypatch.setattr(package_source, "_origin", lambda: record)


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "with space" / WHEEL
    path.parent.mkdir()
    path.write_bytes(b"a wheel")
    return path


def test_the_template_has_parameters_a_role_and_globals_of_this_application():
    template = NEW[Path("template.yaml")]
    assert (template.count("python3.12"), template.count("x86_64")) == (2, 3)
    assert not re.search("python3.13|arm64", template)
    assert not any("cookiecutter" in text for text in NEW.values())
    own, here = (parse(NEW[Path("template.yaml")]), load(ROOT / "template.yaml"))
    # The parameters that differ between environments, and a role that lets every client be asked.
    assert own["Parameters"] == {name: here["Parameters"][name] for name in ("AuthMode", "TokenIssuer")}
    assert own["Resources"]["ServerRole"] == here["Resources"]["WeatherRole"]
    target = {"Runtime": "python3.12", "Architectures": ["x86_64"]}
    assert own["Globals"]["Function"] == {**here["Globals"]["Function"], **target}


def test_the_platform_is_that_of_this_application():
    files = {path.name: path.read_text("utf-8") for path in (ROOT / "platform").glob("*.yaml")}
    assert package_files() == files
    assert {name: NEW[Path("platform") / name] for name in files} == files
    assert NEW[Path("platform/SHA256SUMS")].count("  ") == len(files) == 3


def test_the_sample_events_are_those_that_the_command_events_writes(tmp_path, monkeypatch):
    written = render("orders", "python3.13", "arm64")
    for path, text in written.items():
        if path.parts[0] != "events":
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
    monkeypatch.chdir(tmp_path)
    assert events([]) == 0
    made = {path.relative_to(tmp_path) for path in tmp_path.glob("events/server/*.json")}
    assert made == {path for path in written if path.parts[0] == "events"}
    assert all(path.read_text() == written[path] for path in made)


def test_the_version_is_the_one_that_is_released_with_it():
    """sam init does not replace it, so the template itself has it."""
    assert requirements(APPLICATION)[-1] == f"mcp-roundtrip=={VERSION}"


def requirements(application: Path) -> list[str]:
    return (application / "layer/requirements.txt").read_text("utf-8").splitlines()


def test_a_runtime_that_functions_are_not_deployed_on_is_refused(tmp_path, capsys):
    assert command(["new", str(tmp_path / "orders"), "--runtime", "python3.11"]) == 2
    assert "python3.12, python3.13 and python3.14" in capsys.readouterr().err
    assert not (tmp_path / "orders").exists()


@pytest.mark.parametrize(("python", "runtime"), [("3.11", "python3.13"), ("3.14", "python3.14")])
def test_the_runtime_is_that_of_this_python_if_functions_are_deployed_on_it(python, runtime):
    assert default_runtime(python) == runtime


def test_a_package_of_an_index_is_pinned_and_a_wheel_from_a_file_is_copied(tmp_path, origin, wheel):
    pinned, copied = tmp_path / "pinned", tmp_path / "copied"
    origin(None)
    assert main([str(pinned)]) == 0
    assert [path.name for path in (pinned / "layer/wheels").iterdir()] == [".gitkeep"]
    assert requirements(pinned)[-1] == f"mcp-roundtrip=={VERSION}"
    origin({"url": wheel.as_uri(), "archive_info": {}})
    assert main([str(copied)]) == 0
    assert (copied / "layer/wheels" / WHEEL).read_bytes() == b"a wheel"
    assert requirements(copied)[-1] == f"./layer/wheels/{WHEEL}"


def test_a_wheel_that_was_moved_or_has_another_version_is_refused_and_can_be_named(
    tmp_path, origin, wheel, capsys
):
    origin({"url": (tmp_path / WHEEL).as_uri(), "archive_info": {}})
    (other := tmp_path / "mcp_roundtrip-99.0-py3-none-any.whl").touch()
    for options, reason in (([], "wheel of mcp-roundtrip"), (["--wheel", str(other)], other.name)):
        assert command(["new", str(tmp_path / "orders"), *options]) == 2
        assert reason in capsys.readouterr().err
        assert not (tmp_path / "orders").exists()
    assert main([str(tmp_path / "orders"), "--wheel", str(wheel)]) == 0


@pytest.mark.parametrize(
    ("record", "requirement"),
    [
        ({"url": "file:///src/mcp-roundtrip", "dir_info": {"editable": True}}, "/src/mcp-roundtrip"),
        (
            {"url": "https://git.example/m.git", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}},
            "git+https://git.example/m.git@0a1b",
        ),
        ({"url": "https://files.example/m.tar.gz", "archive_info": {}}, "https://files.example/m.tar.gz"),
    ],
)
def test_a_wheel_is_built_from_what_was_installed(tmp_path, origin, monkeypatch, record, requirement):
    built: list[str] = []
    origin(record)

    def build(requirement: str, folder: Path) -> Path:
        built.append(requirement)
        return folder / WHEEL

    monkeypatch.setattr(package_source, "_build", build)
    assert main([str(tmp_path / "orders")]) == 0
    assert built == [requirement]


def test_a_wheel_that_cannot_be_built_and_a_folder_that_exists_are_refused(tmp_path, origin, capsys):
    (tmp_path / "empty").mkdir()
    origin({"url": (tmp_path / "empty").as_uri(), "dir_info": {}})
    for name, reason in {"orders": "no wheel", "empty": "existing-application.md"}.items():
        assert command(["new", str(tmp_path / name)]) == 2
        assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    "name", ["Orders", "my orders", "-orders", "a--b", "1st", "o" * (MAX_NAME + 1), "or_ders", ""]
)
def test_a_name_that_is_no_name_of_a_stack_is_refused(tmp_path, name):
    assert command(["new", "--", str(tmp_path / name)]) == 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_sam_init_finds_the_template_and_offers_every_runtime():
    [template] = json.loads((ROOT / "cookiecutter.json").read_text("utf-8"))["templates"].values()
    folder = ROOT / template["path"]
    asked = json.loads((folder / "cookiecutter.json").read_text("utf-8"))
    assert folder.resolve() == APPLICATION.parent.resolve()
    assert set(asked["runtime"]) == set(RUNTIMES)
    allowed = load(ROOT / "template.yaml")["Parameters"]["PythonRuntime"]["AllowedValues"]
    assert set(asked["runtime"]) == set(allowed)


def test_the_makefiles_of_both_layers_accept_the_same_wheels():
    def platforms(path: Path) -> list[str]:
        return re.findall(r"^(?:GLIBC_MINORS|PLATFORMS) .*$", path.read_text("utf-8"), re.MULTILINE)

    assert platforms(APPLICATION / "layer/Makefile") == platforms(ROOT / "layers/mcp_roundtrip/Makefile")
