"""New Python interpreters: for a program, and for processes that start with one of the modules in site/."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

SITE = Path(__file__).with_name("site")

TIMES_FASTER = 25
"""Factor by which `fast_clock` speeds up time: a wait of 50 s takes 2 s."""


def python_with(site: str, folder: Path) -> str:
    """Write an interpreter that imports `site/<site>/sitecustomize.py` into `folder`, and return its path."""
    path = folder / f"python-{site}"
    added, interpreter = shlex.quote(str(SITE / site)), shlex.quote(sys.executable)
    path.write_text(f'#!/bin/sh\nPYTHONPATH={added}:"$PYTHONPATH" exec {interpreter} "$@"\n')
    path.chmod(0o755)
    return str(path)


def run_program(
    program: str, *arguments: str, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter, which has these environment variables and PATH."""
    command = [sys.executable, "-c", program, *arguments]
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done
