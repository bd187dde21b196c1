"""Prepare revisions as they are deployed: functions, catalog, layer with bytecode, runtime."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp_roundtrip_tools.template.yaml_reader import load
from measure import HERE, BenchmarkError

ROOT = HERE.parent
CACHE = ROOT / ".cache" / "bench"
LAYER, DEVELOPMENT, TEMPLATE = Path("layers/mcp_roundtrip"), Path("development"), Path("template.yaml")
FUNCTIONS = HERE / "functions"
NOW = "now"


class RevisionUnavailable(Exception):
    """A revision cannot be read. The message says why."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """One revision. `path` is the import path after the function's own folder."""

    title: str
    functions: Path
    path: tuple[Path, ...]
    front_door_mb: int
    """The memory of the front door in the revision's template.yaml."""
    tool_mb: int


def deploy_now(folder: Path) -> Deployment:
    """Deploy the working tree. Raise BenchmarkError."""
    return _deploy(NOW, ROOT, "mcp_roundtrip_tools catalog", folder)


def deploy_revision(revision: str, catalog: str, folder: Path) -> Deployment:
    """Deploy a revision from git; `catalog` is the module that writes the catalog, with its arguments.

    Raise RevisionUnavailable or BenchmarkError.
    """
    return _deploy(revision[:7], export(revision, folder), catalog, folder)


def export(revision: str, folder: Path) -> Path:
    """Write the files of a revision into a new folder of `folder`. Raise RevisionUnavailable."""
    archive, source = folder / "revision.zip", folder / "revision"
    command: list[str | Path] = ["git", "-C", ROOT, "archive", "--output", archive, revision]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise RevisionUnavailable("git is not installed") from None
    except subprocess.CalledProcessError as error:  # not a git checkout, or a shallow one
        raise RevisionUnavailable(error.stderr.strip()) from None
    shutil.unpack_archive(archive, source)
    return source


def _deploy(title: str, source: Path, catalog: str, folder: Path) -> Deployment:
    package, functions = folder / title / "layer", folder / title / "functions"
    copy_sources(source / LAYER / "mcp_roundtrip", package / "mcp_roundtrip")
    copy_sources(FUNCTIONS, functions)
    dependencies = installed_dependencies(source / LAYER)
    path = os.pathsep.join(map(str, (package, source / DEVELOPMENT, dependencies)))
    run([sys.executable, "-m", *catalog.split(), "--functions", functions], PYTHONPATH=path)
    compile_bytecode(package)
    compile_bytecode(functions)
    return Deployment(title, functions, (package, dependencies, runtime()), *memory_sizes(source / TEMPLATE))


def copy_sources(source: Path, target: Path) -> None:
    """Copy a folder without its bytecode caches."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))


def installed_dependencies(layer: Path) -> Path:
    """Return a folder with a layer's dependencies: the locked versions, if the revision has a lock."""
    lock = layer / "requirements.lock"
    file = lock if lock.exists() else layer / "requirements.txt"
    return installed(file.read_text(encoding="utf-8"))


def memory_sizes(template: Path) -> tuple[int, int]:
    """Return the memory of the front door and of the tools, in MB."""
    document: dict[str, Any] = load(template)
    default: int = document["Globals"]["Function"]["MemorySize"]
    front_door = document["Resources"]["FrontDoorFunction"]["Properties"]
    return front_door.get("MemorySize", default), default


def runtime() -> Path:
    """Return a folder with the packages of Lambda's Python runtime, in this environment's versions."""
    return installed("".join(f"{name}=={version(name)}\n" for name in ("awslambdaric", "boto3")))


def installed(requirements: str) -> Path:
    """Return a folder with these requirements and their bytecode. Raise BenchmarkError if pip fails."""
    key = sha256(f"{sys.version}\n{requirements}".encode()).hexdigest()[:16]
    folder = CACHE / key
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted installation starts again.
        unfinished = Path(tempfile.mkdtemp(dir=CACHE, prefix=".unfinished-"))
        file = unfinished / "requirements.txt"
        file.write_text(requirements, encoding="utf-8")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-compile",
        ]
        run([*pip, "--target", unfinished, "--requirement", file])
        compile_bytecode(unfinished)
        unfinished.rename(folder)
    return folder


def compile_bytecode(folder: Path) -> None:
    """Compile as the layer's Makefile does."""
    run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", folder])


def run(command: list[Any], **variables: str) -> None:
    """Run a command. Raise BenchmarkError with its output if it fails."""
    found = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if found.returncode:
        raise BenchmarkError(f"{' '.join(map(str, command))} failed:\n{found.stdout}{found.stderr}")
