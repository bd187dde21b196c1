"""Programs that run to their end or answer lines, and the modules in site/ with which processes start."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

SITE = Path(__file__).with_name("site")


def run(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a program, with options of subprocess.run. Any exit status is returned."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def output_of(*command: str | Path, **options: Any) -> str:
    """Run a program that must succeed, and return what it prints."""
    done = run(*command, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run_program(
    program: str, *arguments: str, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter, which has these environment variables, PATH and PYTHONPATH."""
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    environment = {**inherited, **variables}
    done = run(sys.executable, "-c", program, *arguments, env=environment, input=stdin)
    assert done.returncode == 0, done.stderr
    return done


@contextmanager
def serving(command: Any, **options: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run a command that serves until the block ends; yield its process and the URL of its MCP endpoint."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            assert process.stdout is not None
            found = (re.search(r"http://127\.0\.0\.1:\d+/mcp", line) for line in process.stdout)
            yield process, next(each[0] for each in found if each)
        finally:
            process.terminate()


SILENCE_S = 90
"""The longest a program may be silent: a few seconds, but for a busy computer. Some poll without an end."""

STOP_S = 10
"""The longest a program may take to end after its standard input ended."""


@contextmanager
def answering(*command: str | Path, **options: Any) -> Iterator[Callable[[Any], Any]]:
    """Run a program until the block ends; yield a function that sends it JSON, and returns its answer."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, **options) as process:
        sent, received = process.stdin, process.stdout
        assert sent is not None
        assert received is not None

        def exchange(message: Any) -> Any:
            sent.write(json.dumps(message) + "\n")
            sent.flush()
            watchdog = Timer(SILENCE_S, process.kill)
            watchdog.start()
            line = received.readline()
            watchdog.cancel()
            assert line, f"the program ended with status {process.wait(STOP_S)}"
            return json.loads(line)

        try:
            yield exchange
        finally:
            sent.close()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
