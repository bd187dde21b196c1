"""The template and the sources of its functions: reads them, and notices changes."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import cache_from_source
from pathlib import Path

from mcp_roundtrip_tools.template.model import Application, TemplateError, describe_left_out

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

    `read` returns the application of the template. `error` keeps a change of the template from being used;
    `note` receives it. Raises TemplateError at first. Not thread-safe: the caller holds a lock.
    """

    def __init__(
        self, read: Callable[[], Application], interval_s: float, note: Callable[[str], None]
    ) -> None:
        self.error: str | None = None
        self._read = read
        self._interval_s = interval_s
        self._note = note
        self._changed: set[Path] = set()
        self.application = read()
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
        for path in changed:  # to Python, bytecode of the same second and size is current
            with suppress(OSError):
                Path(cache_from_source(str(path))).unlink()
        try:
            self._replace(self._read())
        except TemplateError as invalid:
            self.error = str(invalid)
            self._note(f"{invalid}\nFunctions restart when this is corrected.")
            return set()
        if self.error is not None:
            self.error = None
            self._note("The error is corrected.")
        found, self._changed = self._changed, set()
        return found

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
