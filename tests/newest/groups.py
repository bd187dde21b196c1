"""What can be newer than its pin: clients, applications, the conformance suite, dependencies of the layer."""

import json
import re
import subprocess
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.version import Version

from support.client_pins import node_pins, python_pins

CLIENTS_OF_TESTS: Final = ("mcp", "fastmcp", "fastmcp-tasks")
MCP_1: Final = "tests/clients/requirements-mcp1.txt"
SUITE: Final = "tests/conformance/suite.py"
LAYER: Final = "layers/mcp_roundtrip/requirements"
PROFILES: Final = "development/mcp_roundtrip_testing/profiles"

_TIMEOUT_S: Final = 120

Versions = Mapping[str, str]
"""Package -> version."""


class Unresolvable(Exception):
    """No versions of some requirements fit together, or a registry does not answer. The text says why."""


@dataclass(frozen=True)
class Source:
    """Packages that a file pins, and their newest versions."""

    path: str
    pinned: Versions
    newest: Versions

    def newer(self) -> dict[str, str]:
        """Return the packages whose newest version is newer than the pinned one, with that version."""
        return {
            name: self.newest[name]
            for name, version in self.pinned.items()
            if name in self.newest and Version(self.newest[name]) > Version(version)
        }


@dataclass(frozen=True)
class Registries:
    """What PyPI and npm offer. `uv` is the program that resolves requirements."""

    uv: Path

    def installable(self, requirements: str, *options: str) -> dict[str, str]:
        """Return the newest versions of requirements, and of all that they require, that fit together."""
        with tempfile.NamedTemporaryFile("w", suffix=".in") as file:
            file.write(requirements)
            file.flush()
            quiet = ("--quiet", "--no-header", "--no-annotate")
            return python_pins(_output([self.uv, "pip", "compile", *quiet, *options, file.name]))

    def latest(self, package: str) -> str:
        return str(json.loads(_output(["npm", "view", package, "version", "--json"])))

    def newest(self, package: str) -> str:
        """Return the newest version on npm, which may be a pre-release."""
        return max(json.loads(_output(["npm", "view", package, "versions", "--json"])), key=Version)


def _output(command: Sequence[str | Path]) -> str:
    """Return what a command prints. Raises Unresolvable."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unresolvable(str(error)) from None
    if done.returncode != 0:
        raise Unresolvable(done.stderr.strip())
    return done.stdout


def clients(project: Path, registries: Registries) -> list[Source]:
    """Return the clients of the matrix. Those in Python also have to fit to what is installed with them."""
    text = (project / MCP_1).read_text("utf-8")
    pinned = python_pins(text)
    sources = [Source(MCP_1, pinned, registries.installable(without_pins(text, pinned)))]
    of_tests = _requirements_of_tests(project)
    pinned = {name: version for name, version in python_pins(of_tests).items() if name in CLIENTS_OF_TESTS}
    found = registries.installable(without_pins(of_tests, pinned))
    sources.append(Source("pyproject.toml", pinned, found))
    sources.append(_of_makefile(project, registries, "clients_NPM"))
    return sources


def hosts(project: Path, registries: Registries) -> list[Source]:
    return [_of_makefile(project, registries, "hosts_NPM")]


def _of_makefile(project: Path, registries: Registries, variable: str) -> Source:
    pinned = node_pins((project / "Makefile").read_text("utf-8"), variable)
    return Source("Makefile", pinned, {name: registries.latest(name) for name in pinned})


def without_pins(text: str, packages: Mapping[str, str]) -> str:
    """Return requirements in which these packages may also be newer."""
    for name, version in packages.items():
        text = re.sub(rf"(\b{re.escape(name)}(?:\[[\w,]+\])?)=={re.escape(version)}", rf"\1>={version}", text)
    return text


def _requirements_of_tests(project: Path) -> str:
    metadata = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    extras = metadata["optional-dependencies"].values()
    lines = [*metadata["dependencies"], *(line for extra in extras for line in extra)]
    return "\n".join(line for line in lines if not line.startswith(metadata["name"]))


def conformance(project: Path, registries: Registries) -> list[Source]:
    """Return the conformance suite with the Node.js that runs it."""
    text = (project / SUITE).read_text("utf-8")
    suite, node = node_pins(text, "SUITE"), python_pins(text)
    found = {name: registries.newest(name) for name in suite} | registries.installable("\n".join(node))
    return [Source(SUITE, suite | node, found)]


def layer(project: Path, registries: Registries) -> list[Source]:
    """Return the dependencies of the layer, within the bounds of its requirements."""
    pinned = python_pins((project / f"{LAYER}.lock").read_text("utf-8"))
    text = (project / f"{LAYER}.txt").read_text("utf-8")
    found = registries.installable(text, "--universal", "--python-version", "3.12", "--only-binary=:all:")
    return [Source(f"{LAYER}.lock", pinned, found)]


@dataclass(frozen=True)
class Group:
    """Pins that are tried together, and the shell command that tries them in a copy of the project."""

    sources: Callable[[Path, Registries], list[Source]]
    command: str


GROUPS: Final[Mapping[str, Group]] = {
    "clients": Group(
        clients,
        "make .venv/.dev .venv-mcp1/.clients .venv-ministack/bin/ministack .cache/clients/package-lock.json "
        "&& .venv/bin/pytest tests/clients/test_real_clients.py tests/functions/test_client_matrix.py "
        "tests/e2e/test_connecting.py",
    ),
    "hosts": Group(hosts, "make hosts"),
    "conformance": Group(conformance, "make conformance"),
    # The lock has the hashes of the files, too.
    "layer": Group(
        layer,
        "make lock .venv/.dev && .venv/bin/python -m pip install --quiet --no-deps "
        f"--requirement {LAYER}.lock && make check",
    ),
}


def apply(copy: Path, sources: Sequence[Source]) -> None:
    """Write the newer versions into a copy of the project: into the pins, and into the profiles."""
    for source in sources:
        if source.path != f"{LAYER}.lock":
            file = copy / source.path
            file.write_text(repinned(file.read_text("utf-8"), source.pinned, source.newer()), "utf-8")
    # Clients send their version, or that of their library.
    changed = [(source.pinned[name], new) for source in sources for name, new in source.newer().items()]
    for file in (copy / PROFILES).glob("*.json"):
        text = file.read_text("utf-8")
        for old, new in changed:
            text = text.replace(f'"{old}"', f'"{new}"')
        file.write_text(text, "utf-8")


def repinned(text: str, pinned: Versions, versions: Versions) -> str:
    """Return the text with other versions of these packages."""
    for name, version in versions.items():
        old = rf"(?<![\w@/.-])({re.escape(name)}(?:\[[\w,]+\])?(?:==|@)){re.escape(pinned[name])}(?![\w.])"
        text = re.sub(old, rf"\g<1>{version}", text)
    return text
