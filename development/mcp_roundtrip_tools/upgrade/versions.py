"""The version of an application's platform/template.yaml, beside that of the installed package."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp_roundtrip.errors import McpRoundtripError
from mcp_roundtrip_tools.template.yaml_reader import load

PACKAGE = "mcp-roundtrip"
TEMPLATE = Path("platform/template.yaml")


class PlatformError(McpRoundtripError):
    """The platform does not fit the package; the message says what to do."""


def package_version() -> str:
    """Return the version of the installed package."""
    return version(PACKAGE)


def platform_version(template: Mapping[str, Any]) -> str:
    """Return the version in platform/template.yaml. Raises PlatformError."""
    match template.get("Metadata"):
        case {"McpRoundtrip": {"Version": str(found)}}:
            return found
    raise PlatformError(f"{TEMPLATE} has no Metadata.McpRoundtrip.Version: mcp-roundtrip new writes it")


def other_version(project: Path) -> str | None:
    """Return a sentence if the application's platform is older or newer than the package, and the remedy.

    An application without a platform has no version. Raises PlatformError and TemplateError.
    """
    if not (project / TEMPLATE).is_file():
        return None
    platform, package = platform_version(load(project / TEMPLATE)), package_version()
    if release(platform) < release(package):
        return f"platform/ is of version {platform}, the package {package}: run mcp-roundtrip upgrade."
    if release(platform) > release(package):
        return newer(platform, package)
    return None


def newer(platform: str, package: str) -> str:
    """Return the sentence for a platform that is newer than the package."""
    return f"platform/ is of version {platform}, the package {package}: install {PACKAGE}=={platform}."


def release(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, such as (1, 2, 0)."""
    return tuple(map(int, re.findall(r"\d+", text)[:3]))
