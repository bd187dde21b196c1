"""Notice that sources changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_IGNORED_SUFFIXES = (".pyc", ".egg-info", ".dist-info")
_IGNORED_NAMES = {"__pycache__", "node_modules"}

Fingerprint = dict[str, tuple[int, int]]
"""Modification time in nanoseconds and size, by path."""


class Watcher:
    """Compares files and folders with what they were; looks at most once every `interval_s`."""

    def __init__(self, paths: Iterable[Path], clock: Callable[[], float], *, interval_s: float = 1.0) -> None:
        self._paths = tuple(paths)
        self._clock = clock
        self._interval_s = interval_s
        self._looked = clock()
        self._seen = self._scan()

    def changed(self) -> str | None:
        """The path of a file that is new, gone or different since the last time."""
        if self._clock() - self._looked < self._interval_s:
            return None
        before, self._seen = self._seen, self._scan()
        self._looked = self._clock()
        if before == self._seen:
            return None
        return min(path for path, _ in before.items() ^ self._seen.items())

    def _scan(self) -> Fingerprint:
        seen: Fingerprint = {}
        for path in (path for root in self._paths for path in _files(root)):
            with suppress(FileNotFoundError):  # editors replace files while they save
                stat = os.stat(path)
                seen[path] = stat.st_mtime_ns, stat.st_size
        return seen


def _files(root: Path) -> Iterator[str]:
    if root.is_file():
        yield str(root)
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if not _is_ignored(name)]
        yield from (os.path.join(folder, name) for name in files if not _is_ignored(name))


def _is_ignored(name: str) -> bool:
    return name.startswith(".") or name in _IGNORED_NAMES or name.endswith(_IGNORED_SUFFIXES)
