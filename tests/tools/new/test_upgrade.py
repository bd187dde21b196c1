import re
import shlex
from importlib.metadata import version
from pathlib import Path

import pytest

from mcp_roundtrip_tools.__main__ import main as command
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.new.package_source import checksums, package_files
from mcp_roundtrip_tools.new.upgrade import UpgradeError, differing_makefiles, main, release, upgrade
from mcp_roundtrip_tools.template.template_files import platform_version
from mcp_roundtrip_tools.template.yaml_reader import load
from support.project import ROOT, contents, edit

PACKAGE = version("mcp-roundtrip")
NEWER = "99.1.0"


def of_version(number: str, files: dict[str, str]) -> dict[str, str]:
    template, count = re.subn(
        r"^    Version: \S+$", f"    Version: {number}", files["template.yaml"], flags=re.M
    )
    assert count == 1
    return {**files, "template.yaml": template}


def install(project: Path, files: dict[str, str]) -> None:
    """Write another version of platform/, as its package would have."""
    write({project / "platform" / name: text for name, text in files.items()})
    write({project / "platform/SHA256SUMS": checksums(files)})


def test_the_platform_has_the_version_of_the_package():
    assert platform_version(load(ROOT / "platform/template.yaml")) == PACKAGE


def test_a_newer_version_is_written_and_its_files_are_named(project):
    files = of_version(NEWER, package_files())
    assert list(upgrade(project, files)) == [
        f"platform/: version {PACKAGE} -> {NEWER}",
        "  platform/template.yaml",
    ]
    assert {name: (project / "platform" / name).read_text() for name in files} == files
    [line] = upgrade(project, files)
    assert f"version {NEWER} already" in line


@pytest.mark.parametrize("name", ["Makefile", "layer/Makefile"])
def test_a_makefile_of_another_version_is_kept_and_compared_with_that_of_this_one(project, capsys, name):
    makefile = project / name
    current = makefile.read_text()
    makefile.write_text(current + "mine:\n")
    assert main(["--project", str(project)]) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{name} is not ")
    *_, own, new = shlex.split(line)
    assert (own, Path(new).read_text()) == (name, current)
    assert makefile.read_text() == current + "mine:\n"
    makefile.unlink()
    assert list(differing_makefiles(project)) == []


def test_an_edited_file_is_kept_unless_the_user_insists(project, capsys):
    edited = project / "platform/endpoint.yaml"
    edited.write_text(edited.read_text() + "# mine\n")
    before = contents(project)
    assert command(["upgrade", "--project", str(project)]) == 2
    assert "platform/endpoint.yaml was edited" in capsys.readouterr().err
    assert contents(project) == before
    assert main(["--project", str(project), "--force"]) == 0
    assert edited.read_text() == package_files()["endpoint.yaml"]


def test_without_checksums_a_file_that_differs_counts_as_edited(project):
    (project / "platform/SHA256SUMS").unlink()
    [line] = upgrade(project, package_files())
    assert f"version {PACKAGE} already" in line
    with pytest.raises(UpgradeError, match=r"platform/template.yaml was edited"):
        list(upgrade(project, of_version(NEWER, package_files())))


def test_a_newer_platform_is_not_replaced(project, capsys):
    install(project, of_version(NEWER, package_files()))
    before = contents(project)
    assert command(["upgrade", "--project", str(project), "--force"]) == 2
    assert f"install mcp-roundtrip=={NEWER}" in capsys.readouterr().err
    assert contents(project) == before


def test_a_release_follows_its_candidates_and_smaller_numbers():
    assert release("0.9.0") < release("0.10.0") < release("1.0rc1") < release("1.0")


def test_an_application_without_a_platform_or_its_version_cannot_be_upgraded(project):
    path = project / "platform/template.yaml"
    edit(path, "  McpRoundtrip:", "  Other:")
    with pytest.raises(UpgradeError, match="no version"):
        list(upgrade(project, package_files()))
    path.unlink()
    assert command(["upgrade", "--project", str(project)]) == 2
