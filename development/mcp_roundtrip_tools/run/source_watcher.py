"""Detect changed sources.

This compares modification times instead of using watchfiles, which cannot be asked before a request whether
a file has just changed, and which stops watching a file that an editor has replaced (inotify watches inodes).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_IGNORED_SUFFIXES = (".pyc", ".egg-info", ".dist-info")
_IGNORED_NAMES = {"__pycache__", "node_modules"}

Fingerprint = dict[str, tuple[int, int]]
"""Modification time in nanoseconds and size, by path."""


class Watcher:
    """Compares files and folders with their previous state, at most once in `interval_s`."""

    def __init__(self, paths: Iterable[Path], clock: Callable[[], float], *, interval_s: float = 1.0) -> None:
        self._paths = tuple(paths)
        self._clock = clock
        self._interval_s = interval_s
        self._checked_at = clock()
        self._seen = fingerprint(self._paths)

    def changed(self) -> tuple[Path, ...]:
        """Return the files that were added, removed or modified since the last call, sorted."""
        if self._clock() - self._checked_at < self._interval_s:
            return ()
        before, self._seen = self._seen, fingerprint(self._paths)
        self._checked_at = self._clock()
        return tuple(sorted({Path(path) for path, _ in before.items() ^ self._seen.items()}))


def fingerprint(paths: Iterable[Path]) -> Fingerprint:
    """Return the current state of files and folders, without bytecode and hidden files."""
    seen: Fingerprint = {}
    for path in (path for root in paths for path in _files(root)):
        with suppress(FileNotFoundError):  # editors replace files while they save
            stat = os.stat(path)
            seen[path] = stat.st_mtime_ns, stat.st_size
    return seen


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
