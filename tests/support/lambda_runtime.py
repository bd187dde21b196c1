"""The Lambda runtime from the view of a function: an interpreter, and packages in /var/runtime."""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mcp_roundtrip_tools.deploy.deployment import NATIVE_ARCHITECTURE
from support.interpreters import output_of, run
from support.sam_build import CACHE

PACKAGES = ("awslambdaric==4.2.2", "boto3==1.40.0")
"""AWS's runtime client, and the oldest boto3 that pyproject.toml admits, since Lambda's is not the newest."""

MACHINE = {"arm64": "aarch64"}.get(NATIVE_ARCHITECTURE, NATIVE_ARCHITECTURE)


@dataclass(frozen=True, slots=True)
class Runtime:
    """An interpreter that starts without site-packages, and the folder that becomes /var/runtime."""

    name: str
    python: Path
    packages: Path


@cache
def runtime(name: str) -> Runtime | None:
    """Return the runtime of a name such as ``python3.13``, or None if the interpreter is not installed."""
    python = interpreter(name)
    return Runtime(name, python, _packages(name)) if python else None


def interpreter(name: str) -> Path | None:
    """Return the base interpreter, not one of a virtual environment, from PATH or from pyenv."""
    pyenv = Path.home() / ".pyenv/versions"
    candidates = [name, *map(str, pyenv.glob(f"{name.removeprefix('python')}.*/bin/{name}"))]
    return next(filter(None, map(_executable, candidates)), None)


def _executable(candidate: str) -> Path | None:
    # A pyenv shim exists even when its version is not selected, so each candidate is run.
    try:
        program = "import sys; print(sys._base_executable)"
        done = run(candidate, "-c", program)
    except OSError:
        return None
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def _packages(name: str) -> Path:
    digest = hashlib.sha256(" ".join(PACKAGES).encode()).hexdigest()[:16]
    folder = CACHE / "lambda-runtime" / f"{name}-{NATIVE_ARCHITECTURE}-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="unfinished-") as scratch:
            _install(name, Path(scratch) / "packages")
            try:
                os.rename(Path(scratch) / "packages", folder)
            except OSError:
                assert folder.exists()  # another process created it first
    return folder


def _install(name: str, folder: Path) -> None:
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    target = ["--target", str(folder), "--python-version", name.removeprefix("python"), *_wheels()]
    output_of(*pip, *PACKAGES, *target)
    python = interpreter(name)
    assert python is not None
    # Lambda's packages are compiled, too.
    subprocess.run([python, "-m", "compileall", "-q", folder], check=True)


def _wheels() -> Iterator[str]:
    yield "--only-binary=:all:"
    for platform in ("manylinux2014", "manylinux_2_17", "manylinux_2_28"):
        yield f"--platform={platform}_{MACHINE}"
