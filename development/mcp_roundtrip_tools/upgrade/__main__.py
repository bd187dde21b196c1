"""Replace the files in platform/ by those of the installed package, and print what changes.

Edited files and a platform that is newer than the package are refused.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.growth.change import write
from mcp_roundtrip_tools.new.package_source import (
    CHECKSUMS,
    PLATFORM,
    checksums,
    edited_files,
    package_files,
)
from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.template_tree import PACKAGE, platform_version, release
from mcp_roundtrip_tools.template.yaml_reader import load, parse

CHANGELOG = Path(__file__).with_name("CHANGELOG.md")

_SECTION = re.compile(r"^## \[(\d[^\]]*)\].*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def parameter_changes(
    before: Mapping[str, Any], after: Mapping[str, Any], passed: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a line for each parameter that differs. `passed` are those that template.yaml sets."""
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            default = after[name].get("Default")
            how = "template.yaml must pass it" if default is None else f"its default is {default!r}"
            yield f"parameter {name}: new; {how}"
        elif name not in after:
            remedy = ": delete its line in template.yaml" if name in passed else ""
            yield f"parameter {name}: removed{remedy}"
        else:
            members = sorted((before[name].keys() | after[name].keys()) - {"Description"})
            for member in members:
                old, new = before[name].get(member), after[name].get(member)
                if old != new:
                    yield f"parameter {name}: {member} {old!r} -> {new!r}"


def changelog_between(changelog: str, before: str, after: str) -> str:
    """Return the sections of the versions after `before`, up to `after`."""
    return "".join(
        found[0]
        for found in _SECTION.finditer(changelog)
        if release(before) < release(found[1]) <= release(after)
    ).strip()


class UpgradeError(McpRoundtripError):
    """The platform cannot be replaced; the message says what to do. No file was changed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status: 2 for an error that the user can correct."""
    parser = argparse.ArgumentParser(prog="mcp-roundtrip upgrade", description=__doc__)
    parser.add_argument("--force", action="store_true", help="replace edited files, too")
    parser.add_argument("--project", type=Path, default=Path(), help="the folder of template.yaml")
    given = parser.parse_args(arguments)
    try:
        for line in upgrade(given.project, package_files(), force=given.force):
            print(line)
    except (UpgradeError, TemplateError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def upgrade(project: Path, files: Mapping[str, str], *, force: bool = False) -> Iterator[str]:
    """Write the files of a package's platform, and yield what changes.

    Raises UpgradeError and TemplateError before anything is written, and OSError.
    """
    platform = project / PLATFORM
    root, before = load(project / "template.yaml"), load(platform / "template.yaml")
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
    yield from parameter_changes(before.get("Parameters", {}), after.get("Parameters", {}), _passed(root))
    if CHANGELOG.is_file() and (text := changelog_between(CHANGELOG.read_text("utf-8"), old, new)):
        yield f"\n{text}"


def _passed(root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the parameters that template.yaml passes to the platform."""
    match root["Resources"].get("Platform"):
        case {"Properties": {"Parameters": dict(passed)}}:
            return passed
    return {}


def _text(path: Path) -> str | None:
    return path.read_text("utf-8") if path.is_file() else None


if __name__ == "__main__":
    sys.exit(main())
