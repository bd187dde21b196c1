"""Install the requirements.txt of functions, as ``sam build`` does for a deployment."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from mcp_roundtrip_tools.run.execution.environment import PYTHON_VERSION
from mcp_roundtrip_tools.template.model import Function, TemplateError

FILE = "requirements.txt"


@dataclass(frozen=True, slots=True)
class Requirements:
    """Installs requirements with `python` into `cache`: one folder for each different content of a file."""

    python: str
    cache: Path
    log: Callable[[str], None]

    def install_for(self, function: Function) -> Function:
        """Return the function with the folder of its requirements, and install them if necessary.

        Raises TemplateError if pip cannot install them.
        """
        file = function.code / FILE
        if not file.is_file() or _is_built(function.code) or not _names(text := file.read_text("utf-8")):
            return function
        folder = self.cache / sha256(f"{PYTHON_VERSION}\n{text}".encode()).hexdigest()[:16]
        if not folder.is_dir():
            self.log(f"[{function.name}] installing {file}")
            self._install(function, file, folder)
        return replace(function, requirements=folder)

    def _install(self, function: Function, file: Path, folder: Path) -> None:
        self.cache.mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted installation starts again.
        unfinished = Path(tempfile.mkdtemp(dir=self.cache, prefix=".unfinished-"))
        command = [self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--target", str(unfinished), "--requirement", str(file)]
        # The interpreter is the caller's choice.
        done = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode == 0:
            unfinished.rename(folder)
            return
        shutil.rmtree(unfinished)
        reason = (done.stderr.strip().splitlines() or ["pip gave no reason"])[-1]
        raise TemplateError(
            f"{function.name}: {file} cannot be installed: {reason}. Correct the file. pip prints more with "
            f"{self.python} -m pip install --dry-run --requirement {file}"
        )


def _names(text: str) -> bool:
    """Return whether the file contains a requirement."""
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())


def _is_built(code: Path) -> bool:
    """Return whether ``sam build`` has installed the requirements in the code's folder."""
    return any(code.glob("*.dist-info"))
