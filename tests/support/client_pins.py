"""The pinned versions of packages, read from where they are pinned."""

import re
from pathlib import Path
from typing import Final

from support.project import ROOT

_PYTHON: Final = re.compile(r"^ *\"?([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", re.MULTILINE)
_NODE: Final = re.compile(r"(@?[\w./-]+)@(\d[\w.-]*)")


def pinned_versions(environment: str) -> dict[str, str]:
    """Return the version of each package that is pinned in `.venv`, `.venv-…` or `.cache/…`."""
    if environment.startswith(".cache/"):
        return node_pins((ROOT / "Makefile").read_text("utf-8"), f"{Path(environment).name}_NPM")
    name = environment.removeprefix(".venv-")
    file = "pyproject.toml" if environment == ".venv" else f"tests/clients/requirements-{name}.txt"
    return python_pins((ROOT / file).read_text("utf-8"))


def python_pins(text: str) -> dict[str, str]:
    """Return the packages that requirements, a lock or pyproject.toml pin with `==`."""
    return dict(_PYTHON.findall(text))


def node_pins(text: str, variable: str) -> dict[str, str]:
    """Return the packages in a variable of the Makefile, or in a constant of a Python module."""
    [pins] = re.findall(rf"^{variable}\b.*?= *(.*)$", text.replace("\\\n", " "), re.MULTILINE)
    return dict(_NODE.findall(pins))
