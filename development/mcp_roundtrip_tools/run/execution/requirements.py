"""Install the requirements.txt of functions, as ``sam build`` does for a deployment."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from mcp_roundtrip_tools.run.execution.environment import PYTHON_VERSION
from mcp_roundtrip_tools.template.model import Function, TemplateError

FILE = "requirements.txt"


def install_requirements(
    function: Function, python: str, cache: Path, log: Callable[[str], None]
) -> Function:
    """Return the function with the folder of its requirements, and install them if necessary.

    `python` installs them into `cache`: one folder for each different content of a file. Raises TemplateError
    if pip cannot install them.
    """
    file = function.code / FILE
    if not file.is_file() or _is_built(function.code) or not _names(text := file.read_text("utf-8")):
        return function
    folder = cache / sha256(f"{PYTHON_VERSION}\n{text}".encode()).hexdigest()[:16]
    if not folder.is_dir():
        log(f"[{function.name}] installing {file}")
        cache.mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted installation starts again.
        unfinished = Path(tempfile.mkdtemp(dir=cache, prefix=".unfinished-"))
        try:
            _install(function, file, unfinished, python)
            unfinished.rename(folder)
        except TemplateError:
            shutil.rmtree(unfinished)
            raise
    return replace(function, requirements=folder)


def _install(function: Function, file: Path, folder: Path, python: str) -> None:
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--target", str(folder), "--requirement", str(file)]
    # The interpreter is the caller's choice.
    done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise TemplateError(
            f"{function.name}: {file} cannot be installed: {reason}. Correct the file. pip prints more with "
            f"{python} -m pip install --dry-run --requirement {file}"
        )


def _names(text: str) -> bool:
    """Return whether the file contains a requirement."""
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())


def _is_built(code: Path) -> bool:
    """Return whether ``sam build`` has installed the requirements in the code's folder."""
    return any(code.glob("*.dist-info"))
