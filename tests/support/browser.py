"""Chromium, if it is installed.

A pytest plugin: a test module that names it in `pytest_plugins` has its fixture; its tests are skipped where
`make test` found no Node.js to install it with.
"""

import fcntl
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from support import skips
from support.interpreters import answering

FOLDER = Path(__file__).parents[2] / ".cache/programs"
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


@pytest.fixture(scope="session")
def run_in_browser() -> Iterator[RunProgram]:
    """Return a function that runs programs in one browser. Skips the test where it is not installed.

    The browser takes a second to start.
    """
    node = skips.find_node("Chromium", FOLDER / "node_modules/@sparticuz/chromium")
    run_text = [node, "--input-type=module", "--eval"]
    with answering(*run_text, PROGRAM.read_text(), cwd=FOLDER, env=_unpacked(run_text)) as exchange:

        def run(program: Path, given: Mapping[str, Any]) -> Any:
            answer = exchange({"program": str(program), "given": given})
            assert "error" not in answer, answer["error"]
            return answer["value"]

        yield run


def _unpacked(run_text: Sequence[str]) -> Mapping[str, str]:
    """Unpack the browser, and return the environment variables of programs that drive it."""
    UNPACKED.mkdir(exist_ok=True)
    fonts = FOLDER / "fonts.conf"
    fonts.write_text(FONTS)
    variables = {
        **os.environ,
        "TMPDIR": str(UNPACKED),  # the package unpacks into this folder
        "AWS_EXECUTION_ENV": "AWS_Lambda_nodejs20.x",  # Chromium's libraries
        "FONTCONFIG_FILE": str(fonts),
    }
    # The package unpacks the browser at its first use. A file that is being written cannot be started.
    with (UNPACKED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (UNPACKED / "complete").exists():
            subprocess.run([*run_text, UNPACK], cwd=FOLDER, env=variables, timeout=TIMEOUT_S, check=True)
            (UNPACKED / "complete").touch()
    return variables


@pytest.fixture
def visit(run_in_browser: RunProgram) -> Visit:
    def run(url: str, html: str, given: Mapping[str, Any]) -> list[tuple[str, str, int]]:
        answers = run_in_browser(VISIT, {"url": url, "html": html, "given": given})
        return [(method, to, status) for method, to, status in answers]

    return run
