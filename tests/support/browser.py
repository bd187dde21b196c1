"""Chromium, if it is installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixture; its tests are skipped where
`make test` found no Node.js to install it with.
"""

import fcntl
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from support import skips

FOLDER = Path(__file__).parents[2] / ".cache/browser"
PROGRAM = Path(__file__).with_name("browser.mjs")
VISIT = Path(__file__).with_name("visit.mjs")
UNPACKED = FOLDER / "unpacked"

FONTS = f"""\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{UNPACKED}/fonts</dir>
  <cachedir>{UNPACKED}/fonts-cache</cachedir>
</fontconfig>
"""
"""The package's own configuration names /tmp/fonts, and Chromium stops when it finds no font."""

TIMEOUT_S = 90
"""A visit takes 2 s, but unpacking the browser once and a busy computer can take longer."""

UNPACK = 'import packaged from "@sparticuz/chromium"; await packaged.executablePath();'

Visit = Callable[[str, str, Mapping[str, Any]], list[tuple[str, str, int]]]
"""Open a page with this URL and text. Its script has the argument as `given`, awaits `ready` first and sets
`done` to true at its end. Return method, URL and status of every request that the page caused. All names
resolve to 127.0.0.1."""


RunProgram = Callable[[Path, Mapping[str, Any]], Any]
"""Run a program that drives the browser (browser.mjs), with JSON as input. Return its value."""


@dataclass(frozen=True)
class Chromium:
    """How Node.js programs that drive Chromium are started."""

    node: str
    variables: Mapping[str, str]

    def command(self, text: str) -> list[str]:
        """Return the command that runs a program; its working directory is FOLDER."""
        return [self.node, "--input-type=module", "--eval", text]

    def run(self, text: str, given: str = "") -> str:
        done = subprocess.run(
            self.command(text),
            cwd=FOLDER,
            env=self.variables,
            input=given,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def chromium() -> Chromium:
    return find_chromium()


def find_chromium() -> Chromium:
    """Return the installed browser, unpacked. Skips the test where there is none."""
    node = skips.find_node("Chromium", FOLDER / "node_modules/@sparticuz/chromium")
    UNPACKED.mkdir(exist_ok=True)
    fonts = FOLDER / "fonts.conf"
    fonts.write_text(FONTS)
    found = Chromium(
        node,
        {
            **os.environ,
            "TMPDIR": str(UNPACKED),  # the package unpacks into this folder
            "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs20.x",  # Chromium's libraries
            "FONTCONFIG_FILE": str(fonts),
        },
    )
    # The package unpacks the browser at its first use. A file that is being written cannot be started.
    with (UNPACKED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (UNPACKED / "complete").exists():
            found.run(UNPACK)
            (UNPACKED / "complete").touch()
    return found


@pytest.fixture(scope="session")
def run_in_browser(chromium: Chromium) -> Iterator[RunProgram]:
    with start_browser(chromium) as run:
        yield run


@contextmanager
def start_browser(chromium: Chromium) -> Iterator[RunProgram]:
    """Return a function that runs programs in one browser, which takes a second to start."""
    with subprocess.Popen(
        chromium.command(PROGRAM.read_text()),
        cwd=FOLDER,
        env=chromium.variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield partial(_run, process)
        assert process.stdin is not None
        process.stdin.close()
        process.wait(TIMEOUT_S)


def _run(process: subprocess.Popen[str], program: Path, given: Mapping[str, Any]) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"program": str(program), "given": given}) + "\n")
    process.stdin.flush()
    watchdog = Timer(TIMEOUT_S, process.kill)
    watchdog.start()
    line = process.stdout.readline()
    watchdog.cancel()
    assert line, "the browser has ended"
    answer = json.loads(line)
    assert "error" not in answer, answer["error"]
    return answer["value"]


@pytest.fixture
def visit(run_in_browser: RunProgram) -> Visit:
    def run(url: str, html: str, given: Mapping[str, Any]) -> list[tuple[str, str, int]]:
        answers = run_in_browser(VISIT, {"url": url, "html": html, "given": given})
        return [(method, to, status) for method, to, status in answers]

    return run
