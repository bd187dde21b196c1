"""Install ministack when a template first needs it, into the cache folder of the user.

A checkout's `.venv-ministack`, which the tests also use, is preferred. Other applications share one
installation per version of ministack and of Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from shutil import rmtree
from typing import Final

from mcp_roundtrip_tools.run.services.ministack import PYTHON, MinistackError

REQUIREMENTS: Final = ("ministack==1.5.33", "cryptography")
"""What DynamoDB and S3 need: a part of MINISTACK_PIN in the Makefile."""

DELAY_S: Final = 1.0
"""The seconds that the start of the functions gets before the installation."""

_NICENESS: Final = 10
"""The installation must not delay the first requests."""

_INTERPRETER: Final = Path("bin/python")


def cache_folder() -> Path:
    """Return the folder of the installation for this Python in the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    version = REQUIREMENTS[0].replace("==", "-")
    return Path(cache, "mcp-roundtrip", f"{version}-python{sys.version_info.major}.{sys.version_info.minor}")


class Installation:
    """Finds the interpreter that has ministack, and installs it once if there is none."""

    def __init__(
        self, log: Callable[[str], None], folder: Path | None = None, preferred: Path = PYTHON
    ) -> None:
        self._log = log
        self._folder = folder or cache_folder()
        self._preferred = preferred
        self._lock = threading.Lock()
        self._begun = False
        self._failure: MinistackError | None = None

    def begin(self) -> None:
        """Install in the background if necessary, so that the first call need not wait."""
        if self._begun or self._find():
            return
        self._begun = True
        installing = threading.Timer(DELAY_S, self._install_early)
        installing.daemon = True
        installing.start()

    def interpreter(self) -> Path:
        """Return the interpreter, after an installation if necessary. Raises MinistackError."""
        with self._lock:
            if self._failure is not None:
                raise self._failure
            return self._find() or self._install()

    def _install_early(self) -> None:
        with suppress(MinistackError):  # the first call reports it
            self.interpreter()

    def _find(self) -> Path | None:
        candidates = (self._preferred, self._folder / _INTERPRETER)
        return next((path for path in candidates if path.is_file()), None)

    def _install(self) -> Path:
        began_s = time.monotonic()
        self._log(f"Installing {REQUIREMENTS[0]} for tables and buckets into {self._folder} (only once) …")
        self._folder.parent.mkdir(parents=True, exist_ok=True)
        # Renamed when complete, so that an interrupted installation starts again.
        unfinished = Path(tempfile.mkdtemp(dir=self._folder.parent, prefix=".unfinished-"))
        python = str(unfinished / _INTERPRETER)
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--disable-pip-version-check"]
        try:
            _run([sys.executable, "-m", "venv", "--without-pip", str(unfinished)])
            _run([*pip, "--quiet", *REQUIREMENTS])
            with suppress(OSError):  # another process was faster
                unfinished.rename(self._folder)
        except MinistackError as error:
            self._failure = error
            raise
        finally:
            rmtree(unfinished, ignore_errors=True)
        self._log(f"Installed ministack in {time.monotonic() - began_s:.0f} s")
        return self._folder / _INTERPRETER


def _run(command: list[str]) -> None:
    niced = ["/usr/bin/env", "nice", "-n", str(_NICENESS), *command]
    done = subprocess.run(niced, capture_output=True, text=True, check=False)  # noqa: S603 - this interpreter
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason"])[-1]
        raise MinistackError(f"ministack, which has tables and buckets, cannot be installed: {reason}")
