"""Compare the version of an application's platform with that of this package.

`mcp-roundtrip new` and `upgrade` write platform/template.yaml with the version of the package that wrote it:
``Metadata: McpRoundtrip: {Version: …}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from mcp_roundtrip_tools.template.model import TemplateError
from mcp_roundtrip_tools.template.template_tree import TemplateTree

PACKAGE = "mcp-roundtrip"


def check_platform(tree: TemplateTree, installed: str | None = None) -> None:
    """Raise TemplateError if the platform is older or newer than the package.

    `tree` is the template of the application; one without a platform is accepted. `installed` is the version
    of the package, by default the one that is installed.
    """
    installed = installed or version(PACKAGE)
    for nested in tree.nested.values():
        written = platform_version(nested.document)
        if written is None or written == installed:
            continue
        if release(written) < release(installed):
            remedy = "run make upgrade"
        else:
            remedy = f"install {PACKAGE}=={written}"
        raise TemplateError(
            f"{nested.label} is that of {PACKAGE} {written}, and {installed} is installed: {remedy}"
        )


def platform_version(document: Mapping[str, Any]) -> str | None:
    """Return the version of the package that wrote a template; None if it is no template of the platform."""
    metadata = (document.get("Metadata") or {}).get("McpRoundtrip")
    return str(metadata["Version"]) if isinstance(metadata, dict) and "Version" in metadata else None


def release(text: str) -> tuple[list[int], bool]:
    """Return what orders versions: the release, and whether it is final (1.0rc1 precedes 1.0)."""
    numbers, rest = re.match(r"([0-9.]*)(.*)", text).groups()  # type: ignore[union-attr]  # it matches any text
    return [int(number) for number in numbers.split(".") if number], not rest
