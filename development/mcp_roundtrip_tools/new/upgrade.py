"""Replace the files in platform/ by those of the installed package, and print which.

Edited files and a platform that is newer than the package are refused. A Makefile is not replaced, because it
may have commands of the author: it is compared with that of a new application.
"""

import argparse
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.growth.written_files import write
from mcp_roundtrip_tools.new.package_source import (
    APPLICATION,
    CHECKSUMS,
    PLATFORM,
    checksums,
    edited_files,
    package_files,
)
from mcp_roundtrip_tools.template.model import PACKAGE
from mcp_roundtrip_tools.template.template_files import platform_version
from mcp_roundtrip_tools.template.yaml_reader import load, parse


class UpgradeError(McpRoundtripError):
    """The platform cannot be replaced; the message says what to do. No file was changed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Raises UpgradeError, TemplateError and OSError."""
    parser = argparse.ArgumentParser(prog="mcp-roundtrip upgrade", description=__doc__)
    parser.add_argument("--force", action="store_true", help="replace edited files, too")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder of template.yaml")
    given = parser.parse_args(arguments)
    for line in upgrade(given.project, package_files(), force=given.force):
        print(line)
    for line in differing_makefiles(given.project):
        print(line)
    return 0


def upgrade(project: Path, files: Mapping[str, str], *, force: bool = False) -> Iterator[str]:
    """Write a package's platform, and yield what changes. Raises UpgradeError, TemplateError and OSError."""
    platform = project / PLATFORM
    before = load(platform / "template.yaml")
    after = parse(files["template.yaml"])
    old, new = platform_version(before), platform_version(after)
    if old is None or new is None:
        raise UpgradeError(f"{PLATFORM}/template.yaml has no version: mcp-roundtrip new writes it")
    if release(old) > release(new):
        raise UpgradeError(
            f"{PLATFORM}/ is that of {PACKAGE} {old}, and {new} is installed: install {PACKAGE}=={old}"
        )
    edited = edited_files(platform, files)
    if edited and not force:
        names = ", ".join(str(PLATFORM / name) for name in edited)
        raise UpgradeError(
            f"{names} was edited: move the change to template.yaml, or replace it by make upgrade FORCE=1"
        )
    changed = [name for name, text in files.items() if _text(platform / name) != text]
    if not changed:
        yield f"{PLATFORM}/ is that of version {new} already."
        return
    write({**{platform / name: text for name, text in files.items()}, platform / CHECKSUMS: checksums(files)})
    yield f"{PLATFORM}/: version {old} -> {new}"
    yield from (f"  {PLATFORM / name}" for name in changed)


def release(text: str) -> tuple[list[int], bool]:
    """Return what orders versions: the release, and whether it is final (1.0rc1 precedes 1.0)."""
    numbers, rest = re.match(r"([0-9.]*)(.*)", text).groups()  # type: ignore[union-attr]  # it matches any text
    return [int(number) for number in numbers.split(".") if number], not rest


def differing_makefiles(project: Path) -> Iterator[str]:
    """Yield a line for each Makefile that is not that of a new application. Raises OSError."""
    for name in ("Makefile", "layer/Makefile"):
        if _text(project / name) not in (None, _text(APPLICATION / name)):
            new = shlex.quote(str(APPLICATION / name))
            yield f"{name} is not replaced. This shows what is new in this version: diff {name} {new}"


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None
