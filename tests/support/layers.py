"""The layer for each target, built once for all processes of the tests, and projects that take it from there.

The layer for this interpreter and architecture is that of `sam_build`.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from support.interpreters import run
from support.project import ROOT
from support.sam_build import NATIVE_RUNTIME, cached, environment

LAYER = ROOT / "layers/mcp_roundtrip"
OTHER_RUNTIME = "python3.14" if NATIVE_RUNTIME != "python3.14" else "python3.13"
OTHER_ARCHITECTURE = {"arm64": "x86_64", "x86_64": "arm64"}[NATIVE_ARCHITECTURE]


ELF_MACHINES = {0x3E: "x86_64", 0xB7: "arm64"}


def targets_of(extensions: Iterable[tuple[str, bytes]]) -> tuple[set[str], set[str]]:
    """Return the runtimes and the architectures of extension modules: their names and contents."""
    found = dict(extensions)
    runtimes = {f"python3.{minor}" for minor in re.findall(r"\.cpython-3(\d+)-", " ".join(found))}
    return runtimes, {ELF_MACHINES[int.from_bytes(each[18:20], "little")] for each in found.values()}


def copy_layer(folder: Path) -> Path:
    return Path(
        shutil.copytree(LAYER, folder / "source", ignore=shutil.ignore_patterns("__pycache__", ".aws-sam"))
    )


def make_layer(
    folder: Path, *variables: str, target: str, copy: Path | None = None, **environment_variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the layer's makefile as sam does: in a copy of its folder, in the target's working directory.

    The layer is `folder / "out"`. `variables` are those of make.
    """
    copy = copy or copy_layer(folder)
    command = ["make", "--makefile", str(LAYER / "Makefile"), "build-RoundtripLayer", *variables]
    env = environment() | {"ARTIFACTS_DIR": str(folder / "out")} | environment_variables
    return run(*command, cwd=copy / "targets" / target, env=env)


def layer_of_runtime(runtime: str) -> Path:
    """Return the layer for a runtime on this architecture, compiled if its interpreter is installed."""
    return _layer(f"{runtime}-{NATIVE_ARCHITECTURE}", "WITHOUT_BYTECODE=1")


def layer_of_other_target() -> Path:
    """Return the layer for OTHER_RUNTIME on OTHER_ARCHITECTURE, built without its interpreter."""
    return _layer(f"{OTHER_RUNTIME}-{OTHER_ARCHITECTURE}", "INTERPRETER=", "WITHOUT_BYTECODE=1")


def _layer(target: str, *variables: str) -> Path:
    def build(directory: Path) -> None:
        done = make_layer(directory, *variables, target=target)
        assert done.returncode == 0, done.stderr

    return cached(f"layer-{target}", build) / "out"


def share_layers(makefile: Path, layers: Mapping[str, Path]) -> None:
    """Replace the makefile of a layer by one that links a built layer, but copies the package for changes.

    `layers` has them by the name of the folder in which sam runs make.
    """
    paths = "".join(f"LAYER_{name} := {path}/python\n" for name, path in layers.items())
    commands = (
        'mkdir "$(SITE)"',
        'ln -s "$(LAYER_$(notdir $(CURDIR)))"/* "$(SITE)"',
        'rm "$(SITE)/mcp_roundtrip"',
        'cp -R "$(LAYER_$(notdir $(CURDIR)))/mcp_roundtrip" "$(SITE)"',
    )
    recipe = "".join(f"\t{each}\n" for each in commands)
    site = "SITE := $(ARTIFACTS_DIR)/python\n"
    makefile.write_text(f"{paths}{site}build-RoundtripLayer:\n{recipe}", "utf-8")
