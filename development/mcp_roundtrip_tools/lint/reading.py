"""The modules that the command checks: which they are, and why one cannot be read."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class ModuleError(Exception):
    """A module cannot be read or parsed. Its text names the file, the line and the reason."""

    def __init__(self, path: Path, line: int | None, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")


def modules_in(paths: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Return the modules of these files and folders, and a message for each folder without one.

    Hidden folders and virtual environments are left out.
    """
    found: dict[Path, None] = {}
    messages = []
    for path in paths:
        modules = _modules_of(path) if path.is_dir() else [path]
        found |= dict.fromkeys(modules)
        if not modules:
            messages.append(f"{path}: this folder has no Python modules")
    return list(found), messages


def _modules_of(folder: Path) -> list[Path]:
    found = [each for each in sorted(folder.rglob("*.py")) if not each.is_dir()]
    environments = {each.parent for each in folder.rglob("pyvenv.cfg")} if found else set()
    return [
        each
        for each in found
        if not _is_hidden(each.relative_to(folder)) and environments.isdisjoint(each.parents)
    ]


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") or part in ("__pycache__", "node_modules") for part in path.parts)


def read_module(path: Path) -> str:
    """Return the text of a module, in the encoding that it declares. Raises as `reporting_errors` knows."""
    return importlib.util.decode_source(path.read_bytes())


@contextmanager
def reporting_errors(path: Path) -> Iterator[None]:
    """Raise ModuleError for what reading and parsing a module can raise."""
    try:
        yield
    except OSError as error:
        raise ModuleError(path, None, f"cannot be read: {error.strerror or error}") from error
    except SyntaxError as error:
        raise ModuleError(path, error.lineno, f"is not valid Python: {error.msg}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ModuleError(path, line, f"is not valid {error.encoding}: {error.reason}") from error
    except (RecursionError, MemoryError) as error:
        reason = "is nested too deeply: shorten its longest expression or elif"
        raise ModuleError(path, None, reason) from error
    except ValueError as error:  # a null character, in Python 3.11
        raise ModuleError(path, None, f"is not valid Python: {error}") from error
