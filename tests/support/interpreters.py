"""New Python interpreters for programs, and the modules in site/ with which processes start."""

import os
import subprocess
import sys
from pathlib import Path

SITE = Path(__file__).with_name("site")


def run_program(
    program: str, *arguments: str, stdin: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program in a new interpreter, which has these environment variables, PATH and PYTHONPATH."""
    command = [sys.executable, "-c", program, *arguments]
    inherited = {name: value for name, value in os.environ.items() if name in ("PATH", "PYTHONPATH")}
    environment = {**inherited, **variables}
    done = subprocess.run(command, env=environment, input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done
