"""The versions of the MCP clients that the tests drive, read from where they are pinned."""

import re
from pathlib import Path

from support.project import ROOT

REQUIREMENTS = ROOT / "tests/clients"

_EXTRA = r"(?:\[[\w,]+\])?"
_PYTHON = re.compile(rf"^([\w.-]+){_EXTRA}==([\w.]+)", re.MULTILINE)
_DEVELOPMENT = re.compile(rf'^ *"([\w.-]+){_EXTRA}==([\w.]+)"', re.MULTILINE)
_NODE = re.compile(r"(@?[\w./-]+)@([\d.]+)")


def pinned_versions(environment: str) -> dict[str, str]:
    """Return the version of each package that is pinned in `.venv`, `.venv-…` or `.cache/…`."""
    if environment.startswith(".cache/"):
        return dict(_NODE.findall(_npm_pins(Path(environment).name)))
    if environment == ".venv":
        return dict(_DEVELOPMENT.findall((ROOT / "pyproject.toml").read_text("utf-8")))
    name = environment.removeprefix(".venv-")
    return dict(_PYTHON.findall((REQUIREMENTS / f"requirements-{name}.txt").read_text("utf-8")))


def _npm_pins(name: str) -> str:
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", " ")
    [pins] = re.findall(rf"^{name}_NPM\s*:= (.*)$", makefile, re.MULTILINE)
    return str(pins)
