"""The options of a run: those of `serve`, and of `start_functions`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass

from mcp_roundtrip_tools.run.issuer.issuer import LocalIssuer


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a run. `python` is the interpreter of the functions.

    `development_keys`: the KMS keys are the same in each run (`services.development_keys`).
    """

    parameters: Mapping[str, str]
    fresh: bool
    python: str
    watch_interval_s: float
    variables: Mapping[str, str]
    debug: bool
    checks: bool = False
    issuer: LocalIssuer | None = None
    console_url: str | None = None
    development_keys: bool = False

    def python_version(self) -> str:
        """Return the version of the interpreter, such as 3.13. Raises OSError and CalledProcessError."""
        if self.python == sys.executable:
            return f"{sys.version_info.major}.{sys.version_info.minor}"
        command = [self.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        # The interpreter is the caller's choice.
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
