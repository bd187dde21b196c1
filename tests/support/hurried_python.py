"""An interpreter for functions whose time passes faster: a minute's wait takes a second and a half."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "hurried"

TIMES_FASTER = 40
"""As `hurried/sitecustomize.py` has it."""


def hurried_python(folder: Path) -> str:
    """The path of the interpreter, which `folder` takes."""
    path = folder / "hurried-python"
    hurried, interpreter = shlex.quote(str(FOLDER)), shlex.quote(sys.executable)
    path.write_text(f'#!/bin/sh\nPYTHONPATH={hurried}:"$PYTHONPATH" exec {interpreter} "$@"\n')
    path.chmod(0o755)
    return str(path)
