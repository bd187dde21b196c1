"""The template and the sources of its functions: reads them, notices changes, and keeps edited copies.

A copy is another version, as a deployment between two rounds makes one. The project is only read.
"""

import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from traceback import format_exception_only
from typing import Final

from mcp_roundtrip_tools.template.model import Application, Function, TemplateError, describe_left_out

MAX_FILE: Final = 512 * 1024
"""The largest source file that is shown, in bytes."""

MAX_FILES: Final = 200

SUFFIXES: Final = frozenset({".py", ".json", ".html", ".css", ".js", ".md", ".toml", ".yaml"})

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,7}")
"""A relative path without hidden parts."""


class SourceError(Exception):
    """Edited files cannot run; the message names the file."""


@dataclass(frozen=True, slots=True)
class _Copy:
    files: Mapping[str, str]
    folder: Path


class EditedSources:
    """Keeps in `folder` at most one edited copy of each code folder. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._root = folder
        self._projects: dict[str, Path] = {}
        self._copies: dict[Path, _Copy] = {}
        self._count = 0

    def project_folder(self, function: str) -> Path:
        """Return the folder of a function's code in the project. Raises KeyError."""
        return self._projects[function]

    def files(self, function: str) -> Mapping[str, str]:
        """Return the edited files of a function by name. Raises KeyError."""
        copy = self._copies.get(self._projects[function])
        return {} if copy is None else copy.files

    def sharing(self, function: str) -> list[str]:
        """Return the names of all functions with the same code. Raises KeyError."""
        code = self._projects[function]
        return [name for name, folder in self._projects.items() if folder == code]

    def apply_to(self, functions: Mapping[str, Function]) -> dict[str, Function]:
        """Return the functions of the project with their edited code."""
        self._projects = {name: function.code for name, function in functions.items()}
        return {name: replace(each, code=self._folder(each.code)) for name, each in functions.items()}

    def edit(self, function: str, files: Mapping[str, str]) -> None:
        """Replace a function's edited files, which are some of those that are shown, or drop them.

        SourceError and KeyError change nothing.
        """
        code = self._projects[function]
        if not files:
            self._copies.pop(code, None)
            return
        check_syntax(files)
        self._copies[code] = _Copy(dict(files), self._write(code, files))

    def refresh(self, changed: Iterable[Path]) -> None:
        """Copy the code folders again that contain a changed file. Raises SourceError."""
        for code, copy in self._copies.items():
            if any(path.is_relative_to(code) for path in changed):
                self._copies[code] = _Copy(copy.files, self._write(code, copy.files))

    def _folder(self, code: Path) -> Path:
        copy = self._copies.get(code)
        return code if copy is None else copy.folder

    def _write(self, code: Path, files: Mapping[str, str]) -> Path:
        self._count += 1
        # A new folder each time: processes that still run the previous version keep their files.
        folder = self._root / f"{code.name}-{self._count}"
        try:
            _copy(code, folder, files)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise SourceError(f"{code.name} cannot be copied: {error}") from None
        return folder


def _copy(code: Path, folder: Path, files: Mapping[str, str]) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(code, folder, ignore=ignored, ignore_dangling_symlinks=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)  # the project may have lost it since
        path.unlink(missing_ok=True)  # the copy of a file that is read-only is read-only, too
        path.write_bytes(text.encode())


def source_files(code: Path) -> dict[str, str]:
    """Return the source files of a folder by name, without hidden and large ones, and links out of it."""
    found = {}
    root = code.resolve()
    for path in sorted(code.rglob("*")):
        name = path.relative_to(code).as_posix()
        if path.suffix in SUFFIXES and _NAME.fullmatch(name) and _is_small_file(path, root):
            try:
                found[name] = path.read_bytes().decode()
            except (UnicodeDecodeError, OSError):
                continue
        if len(found) == MAX_FILES:
            break
    return found


def _is_small_file(path: Path, root: Path) -> bool:
    return path.is_file() and path.resolve().is_relative_to(root) and path.stat().st_size <= MAX_FILE


def check_syntax(files: Mapping[str, str]) -> None:
    """Raise SourceError if Python cannot compile one of these files."""
    for name, text in files.items():
        try:
            if name.endswith(".py"):
                compile(text.encode(), name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            problem = "".join(format_exception_only(error)).strip()
            raise SourceError(problem if name in problem else f"{name}: {problem}") from None


_IGNORED_SUFFIXES = (".pyc", ".egg-info", ".dist-info")
_IGNORED_NAMES = {"__pycache__", "node_modules"}

Fingerprint = dict[str, tuple[int, int]]
"""Modification time in nanoseconds and size, by path."""


def fingerprint(paths: Iterable[Path]) -> Fingerprint:
    """Return the current state of files and folders, without bytecode and hidden files."""
    seen: Fingerprint = {}
    for path in (path for root in paths for path in _files(root)):
        with suppress(FileNotFoundError):  # editors replace files while they save
            stat = os.stat(path)
            seen[path] = stat.st_mtime_ns, stat.st_size
    return seen


def changed_files(before: Fingerprint, after: Fingerprint) -> set[Path]:
    """Return the files that were added, removed or modified."""
    return {Path(path) for path, _ in before.items() ^ after.items()}


@contextmanager
def call_periodically(check: Callable[[], object], interval_s: float) -> Iterator[None]:
    """Call `check` every `interval_s` in a thread until the block ends."""
    ended = threading.Event()

    def run() -> None:
        while not ended.wait(interval_s):
            check()

    thread = threading.Thread(target=run, name="watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _files(root: Path) -> Iterator[str]:
    if root.is_file():
        yield str(root)
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not _is_ignored(name)]
        yield from (os.path.join(folder, name) for name in files if not _is_ignored(name))


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name in _IGNORED_NAMES or name.endswith(_IGNORED_SUFFIXES)


class Project:
    """The application of a template file, as its sources are now: they are read at most once in `interval_s`.

    `read` returns the application of the template, of which `edited` are copies that run instead. `error`
    keeps a change of the template from being used; `note` receives it. Raises TemplateError at first. Not
    thread-safe: the caller holds a lock.
    """

    def __init__(
        self,
        read: Callable[[], Application],
        interval_s: float,
        note: Callable[[str], None],
        edited: EditedSources,
    ) -> None:
        self._edited = edited
        self.error: str | None = None
        self._read = read
        self._interval_s = interval_s
        self._note = note
        self._changed: set[Path] = set()
        self.application = self._edited_version(read())
        self._look()

    def reload(self) -> set[Path]:
        """Read the sources again if they have changed and are valid; return the files changed since then."""
        if time.monotonic() - self._looked_at_s < self._interval_s:
            return set()
        before = self._seen
        self._look()
        changed = changed_files(before, self._seen)
        if not changed:
            return set()
        self._changed |= changed
        try:
            self._edited.refresh(self._changed)
            self._replace(self._edited_version(self._read()))
        except (TemplateError, SourceError) as invalid:
            self.error = str(invalid)
            self._note(f"{invalid}\nFunctions restart when this is corrected.")
            return set()
        if self.error is not None:
            self.error = None
            self._note("The error is corrected.")
        found, self._changed = self._changed, set()
        return found

    def edit(self, function: str, files: Mapping[str, str]) -> None:
        """Replace the edited files of a function. Raises SourceError, TemplateError and KeyError."""
        application = self._read()
        self._edited.edit(function, files)
        self._replace(self._edited_version(application))

    def _edited_version(self, application: Application) -> Application:
        return replace(application, functions=self._edited.apply_to(application.functions))

    def _replace(self, application: Application) -> None:
        before, self.application = self.application, application
        for line in describe_left_out(application):
            if line not in describe_left_out(before):
                self._note(line)
        if application.sources != before.sources:
            self._look()

    def _look(self) -> None:
        self._seen = fingerprint(self.application.sources)
        self._looked_at_s = time.monotonic()
