"""What a new version of platform/ changes for an application: its parameters, and the changelog."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.template_tree import release

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
