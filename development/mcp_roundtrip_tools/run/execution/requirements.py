"""Install packages into folders, such as the requirements.txt of functions, as ``sam build`` does."""

import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

from mcp_roundtrip_tools.run.execution.runtime_process import PYTHON_VERSION
from mcp_roundtrip_tools.template.model import Function, TemplateError

FILE = "requirements.txt"


class PipError(Exception):
    """pip cannot install packages; the message is its reason."""


def install_packages(folder: Path, pip: Sequence[str], cwd: Path | None = None) -> None:
    """Run a command of pip. `folder` exists when all packages are installed into it. Raises PipError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent, prefix=".unfinished-") as unfinished:
        packages = Path(unfinished, "packages")
        command = [*pip, "--quiet", "--disable-pip-version-check", "--target", str(packages)]
        # The interpreter is the caller's choice.
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            raise PipError((done.stderr.strip().splitlines() or ["pip gave no reason"])[-1])
        with suppress(OSError):  # another process was faster
            packages.rename(folder)


def install_requirements(
    function: Function, python: str, cache: Path, log: Callable[[str], None]
) -> Function:
    """Return the function with folders of its requirements and its layers' in `cache`, one for each content.

    `python` installs them if necessary. Raises TemplateError if pip cannot. `log` takes lines for the user.
    """
    # A Makefile builds its layer, such as that of this package, which is installed here.
    layers = [folder for folder in function.layers if not (folder / "Makefile").is_file()]
    found = []
    for source in (function.code, *layers):
        if (folder := _installed(function.name, source, python, cache, log)) is not None:
            found.append(folder)
            for module in source.glob("*.py"):
                # Here the module hides a package; in a folder of sam build, a package with a folder hides it.
                if (folder / module.name).exists() or (folder / module.stem).is_dir():
                    log(f"[{function.name}] {module} has the name of a package in {FILE}: rename it")
    return replace(function, requirements=tuple(found))


def _installed(name: str, source: Path, python: str, cache: Path, log: Callable[[str], None]) -> Path | None:
    """Return the folder of the packages of `source`; None without any. Raises TemplateError."""
    file = source / FILE
    is_built = any(source.glob("*.dist-info"))  # by ``sam build``, which has installed them
    if is_built or not file.is_file() or not _names(text := file.read_text("utf-8")):
        return None
    folder = cache / sha256(f"{PYTHON_VERSION}\n{text}".encode()).hexdigest()[:16]
    if not folder.is_dir():
        log(f"[{name}] installing {file}")
        try:
            pip = [python, "-m", "pip", "install", "--requirement", str(file)]
            install_packages(folder, pip, cwd=file.parent)
        except PipError as error:
            raise TemplateError(
                f"{name}: {file} cannot be installed: {error}. Correct the file. pip prints more "
                f"with {python} -m pip install --dry-run --requirement {file}"
            ) from None
    return folder


def _names(text: str) -> bool:
    """Return whether the file contains a requirement."""
    return any(line.strip() and not line.strip().startswith("#") for line in text.splitlines())
