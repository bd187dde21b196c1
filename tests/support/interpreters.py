"""Programs that run to their end, and the modules in site/ with which processes start."""

import os
import subprocess
import sys
from pathlib import Path
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
