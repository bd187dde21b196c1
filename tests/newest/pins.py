"""The pins of clients, of the conformance suite and of the layer: read, compared, and replaced in a text."""

import re
from collections.abc import Mapping
from typing import Final

from packaging.version import Version

Versions = Mapping[str, str]
"""Package -> version."""

_PYTHON: Final = re.compile(r"^ *\"?([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", re.MULTILINE)
_NODE: Final = re.compile(r"(@?[\w./-]+)@(\d[\w.-]*)")


def python_pins(text: str) -> dict[str, str]:
    """Return the packages that requirements, a lock or pyproject.toml pin with `==`."""
    return dict(_PYTHON.findall(text))


def node_pins(text: str, variable: str) -> dict[str, str]:
    """Return the packages in a variable of the Makefile, or in a constant of a Python module."""
    [pins] = re.findall(rf"^{variable}\b.*?= *(.*)$", text.replace("\\\n", " "), re.MULTILINE)
    return dict(_NODE.findall(pins))


def without_pins(text: str, packages: Mapping[str, str]) -> str:
    """Return requirements in which these packages may also be newer."""
    for name, version in packages.items():
        text = re.sub(rf"(\b{re.escape(name)}(?:\[[\w,]+\])?)=={re.escape(version)}", rf"\1>={version}", text)
    return text


def newer(pinned: Versions, found: Versions) -> dict[str, str]:
    """Return the packages whose found version is newer than the pinned one, with that version."""
    return {
        name: found[name]
        for name, version in pinned.items()
        if name in found and Version(found[name]) > Version(version)
    }


def repinned(text: str, pinned: Versions, versions: Versions) -> str:
    """Return the text with other versions of these packages."""
    for name, version in versions.items():
        old = rf"(?<![\w@/.-])({re.escape(name)}(?:\[[\w,]+\])?(?:==|@)){re.escape(pinned[name])}(?![\w.])"
        text = re.sub(old, rf"\g<1>{version}", text)
    return text


def newest_of(versions: list[str]) -> str:
    """Return the newest version, which may be a pre-release."""
    return max(versions, key=Version)
