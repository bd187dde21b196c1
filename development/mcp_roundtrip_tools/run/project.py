"""The template and the sources of its functions: reads them, and notices their changes."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mcp_roundtrip_tools.run.edited_sources import EditedSources, SourceError
from mcp_roundtrip_tools.run.execution.requirements import Requirements
from mcp_roundtrip_tools.run.services.template_keys import TemplateKeys
from mcp_roundtrip_tools.template.left_out import describe_left_out
from mcp_roundtrip_tools.template.model import Application, Function, Storage, TemplateError
from mcp_roundtrip_tools.template.reader import Template

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


@dataclass(frozen=True, slots=True)
class ProjectServices:
    """What a template needs to be read: its keys, the URLs of its API and of SQS, and the requirements.

    `variables` are those of every function. `declare` receives the tables and buckets. `note` receives errors
    in changed sources.
    """

    keys: TemplateKeys
    api_url: str
    sqs_url: str
    requirements: Requirements
    variables: Mapping[str, str]
    declare: Callable[[Storage], None]
    note: Callable[[str], None]


class Project:
    """The application of a template file, as its sources are now.

    `edited` are the edited copies of its code, which run instead. `error` keeps a change of the template from
    being used. Raises TemplateError at first. Not thread-safe: the caller holds a lock.
    """

    def __init__(
        self,
        template: Path,
        parameters: Mapping[str, str],
        services: ProjectServices,
        *,
        watch_interval_s: float,
    ) -> None:
        self.template = template
        self.parameters = parameters
        self.edited = EditedSources()
        self._services = services
        self._interval_s = watch_interval_s
        self.error: str | None = None
        self._changed: set[Path] = set()
        self.application = self._read(Template(template, parameters))
        self._watcher = self._watch()

    def reload(self) -> set[Path]:
        """Read the sources again if they have changed and are valid; return the files changed since then."""
        changed = self._watcher.changed()
        if not changed:
            return set()
        self._changed |= {*changed}
        try:
            self.edited.refresh(self._changed)
            self._replace(Template(self.template, self.parameters))
        except (TemplateError, SourceError) as invalid:
            self.error = str(invalid)
            self._services.note(f"{invalid}\nFunctions restart when this is corrected.")
            return set()
        if self.error is not None:
            self.error = None
            self._services.note("The error is corrected.")
        found, self._changed = self._changed, set()
        return found

    def edit(self, function: str, files: Mapping[str, str]) -> None:
        """Replace the edited files of a function. Raises SourceError, TemplateError and KeyError."""
        template = Template(self.template, self.parameters)
        self.edited.edit(function, files)
        self._replace(template)

    def close(self) -> None:
        """Remove the edited copies."""
        self.edited.close()

    def _replace(self, template: Template) -> None:
        before, self.application = self.application, self._read(template)
        for line in describe_left_out(self.application):
            if line not in describe_left_out(before):
                self._services.note(line)
        if self.application.sources != before.sources:
            self._watcher = self._watch()

    def _read(self, template: Template) -> Application:
        given = self._services
        given.keys.create(template.keys())
        found = template.application(given.keys.arns, given.api_url, given.sqs_url, given.variables)
        functions, left_out = dict[str, Function](), dict(found.left_out)
        for name, function in found.functions.items():
            try:
                functions[name] = given.requirements.install_for(function)
            except TemplateError as error:
                left_out[name] = str(error)
        if left_out and not functions:
            reasons = "\n".join(left_out.values())
            raise TemplateError(f"no function of {template.path} can run on this computer:\n{reasons}")
        given.declare(found.storage)
        return replace(found, functions=self.edited.apply_to(functions), left_out=left_out)

    def _watch(self) -> Watcher:
        return Watcher(self.application.sources, time.monotonic, interval_s=self._interval_s)
