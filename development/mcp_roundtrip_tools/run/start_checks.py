"""Find what keeps functions from running when their sources are saved, before a request needs them.

A function with a problem gets no requests: its callers get the problem instead. A function with a warning
runs, and lacks a setting that it may need, or has a tool that models refuse.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.run.execution.environment import INIT_TIMEOUT_S
from mcp_roundtrip_tools.template.model import Function

MAX_TEXT: Final = 4_000
"""The characters of a traceback that are kept; the message is at its end."""

_FRAME: Final = re.compile(r'\s*File "(?P<path>[^"]+)", line \d+, in ')
_LAYER_MODULE: Final = re.compile(r"^mcp_roundtrip\.[a-z_.]+\.(?=\w+: )")
"""Before the name of an exception."""

_HEADERS: Final = ("Traceback (most recent call last):", "  [Previous line repeated")
_ANY_FRAME: Final = re.compile(r'^ +File "', re.MULTILINE)
_INSTALLED: Final = frozenset({"site-packages", "dist-packages", "mcp_roundtrip"})


def author_traceback(text: str, folder: Path, code: Path) -> str:
    """Return a traceback without the frames of Python, of installed packages and of the layer.

    `folder` is that of the template, and `code` that of the function. Paths below them are relative.
    """
    kept = _kept_lines(text, lambda path: _is_author_s(path, folder, code))
    lines = "\n".join(_LAYER_MODULE.sub("", line) for line in kept)
    for root in (folder, code):
        lines = lines.replace(f'File "{root}/', 'File "')
    return lines if len(lines) <= MAX_TEXT else f"…{lines[-MAX_TEXT:]}"


def without_layer(text: str) -> str:
    """Return a traceback that a function logged without the frames of the layer and of packages."""
    lines = _kept_lines(text, lambda path: not _INSTALLED.intersection(path.parts))
    return "\n".join(_LAYER_MODULE.sub("", line) for line in lines)


def message_of(text: str) -> str:
    """Return a traceback without its frames; another text as it is."""
    lines = [line for line in text.splitlines() if not line.startswith("  ")]
    return "\n".join(lines) if lines and _ANY_FRAME.search(text) else text


def _kept_lines(text: str, is_shown: Callable[[Path], bool]) -> Iterator[str]:
    """Yield the lines of a traceback without headers and without the frames of files that are not shown."""
    is_hidden = False
    for line in text.splitlines():
        if found := _FRAME.match(line):
            is_hidden = not is_shown(Path(found["path"]))
        elif not line.startswith("    "):  # not the source of a frame
            is_hidden = False
        if not is_hidden and line.strip() and not line.startswith(_HEADERS):
            yield line


def _is_author_s(path: Path, folder: Path, code: Path) -> bool:
    root = next((each for each in (code, folder) if path.is_relative_to(each)), None)
    if root is None:
        return False
    parts = path.relative_to(root).parts
    return not _INSTALLED.intersection(parts) and not any(part.startswith(".") for part in parts)


CHECK_AGAIN_S: Final = 5.0
"""After these seconds, a request to a function with a problem checks it again: imports may use a network."""

_PROGRAM: Final = Path(__file__).with_name("execution") / "start_check.py"


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found: the problem, if there is one, and the warnings."""

    problem: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class _Check:
    """A check of a function that has been started."""

    function: Function
    finding: Future[Finding] = field(init=False)
    ended_s: float | None = None

    def is_old(self) -> bool:
        """Return whether the problem may be over."""
        has_problem = self.ended_s is not None and self.finding.result().problem is not None
        return has_problem and time.monotonic() - (self.ended_s or 0) > CHECK_AGAIN_S


class StartChecks:
    """Checks functions in background threads. Thread-safe.

    `note` gets each problem and each warning once for each change.
    """

    def __init__(self, check: Callable[[Function], Finding], note: Callable[[str], None]) -> None:
        self._check = check
        self._note = note
        self._lock = threading.RLock()
        self._checkers = ThreadPoolExecutor(2, thread_name_prefix="check")
        self._checks: dict[str, _Check] = {}
        self._findings: dict[str, Finding] = {}
        self._noted: set[str] = set()

    def check(self, functions: Iterable[Function]) -> None:
        """Check functions whose sources are new or have changed."""
        with self._lock:
            self._noted.clear()
            for function in functions:
                self._begin(function)

    def keep(self, names: Iterable[str]) -> None:
        """Forget the functions that are not among these."""
        with self._lock:
            for name in self._checks.keys() - {*names}:
                del self._checks[name]
                self._findings.pop(name, None)

    def problem(self, function: Function) -> str | None:
        """Return the problem of a function. Waits until it is checked."""
        with self._lock:
            check = self._checks.get(function.name)
            if check is None or check.function != function or check.is_old():
                check = self._begin(function)
        try:
            return check.finding.result().problem
        except CancelledError:  # the run ends
            return None

    def findings(self) -> Mapping[str, Finding]:
        """Return what is known by the names of the functions."""
        with self._lock:
            return dict(sorted(self._findings.items()))

    def are_running(self) -> bool:
        """Return whether a check has not ended."""
        with self._lock:
            return any(check.ended_s is None for check in self._checks.values())

    def close(self) -> None:
        """Wait for the running checks."""
        self._checkers.shutdown(cancel_futures=True)

    def _begin(self, function: Function) -> _Check:
        self._checks[function.name] = check = _Check(function)
        check.finding = self._checkers.submit(self._run, check)
        return check

    def _run(self, check: _Check) -> Finding:
        finding, name = self._check(check.function), check.function.name
        with self._lock:
            if self._checks.get(name) is check:
                for text in self._news(name, finding):
                    self._note(f"[{name}] {text}")
            check.ended_s = time.monotonic()
        return finding

    def _news(self, name: str, finding: Finding) -> Iterator[str]:
        """Record a finding; yield what is new. Functions with the same code have one problem."""
        before = self._findings.pop(name, Finding()).problem
        is_corrected = before is not None and all(each.problem != before for each in self._findings.values())
        self._findings[name] = finding
        if (problem := finding.problem) is not None:
            if problem not in self._noted:
                yield f"does not run:\n{problem}"
            self._noted.add(problem)
            return
        if is_corrected:
            yield "runs again: the error is corrected"
        for text in finding.warnings:
            if text not in self._noted:
                yield text
            self._noted.add(text)


def check_start(
    function: Function, variables: Mapping[str, str], python: str, folder: Path, changed: Iterable[Path]
) -> Finding:
    """Return what keeps a function from running (the author's frames, then the message), and its warnings.

    `variables` are those of its process, `folder` is that of the template. The syntax of `changed` files is
    checked even if the function does not import them.
    """
    files = [os.fspath(path) for path in sorted(changed) if path.is_relative_to(function.code)]
    timeout_s = INIT_TIMEOUT_S + function.timeout_s
    try:
        ended = subprocess.run(  # noqa: S603 - starting the caller's interpreter is the point
            [python, "-P", os.fspath(_PROGRAM), function.handler, *files],
            cwd=function.code,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Finding(f"The import of {function.module} takes longer than {timeout_s:g} s.")
    except OSError as error:
        return Finding(f"{function.code} cannot be read: {error}")
    if not ended.stdout:
        status = ended.returncode
        return Finding(f"The import of {function.module} ends the process (exit status {status}).")
    found = json.loads(ended.stdout)
    texts = [author_traceback(text, folder, function.code) for text in found["problems"]]
    return Finding("\n".join(texts) or None, tuple(found["warnings"]))
