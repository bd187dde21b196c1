"""The seeded faults: a file for each, beside this module.

A file has the behaviour that breaks, some tests that catch the fault, and a patch of the layer::

    A state is accepted after its flow has ended, if its own expiry is later.

    Caught by:
    tests/state/test_codec.py::test_a_reduced_flow_limit_applies_to_tokens_minted_earlier

    diff --git a/layers/mcp_roundtrip/mcp_roundtrip/state/claims.py …

When the patched code is rewritten, the description says which fault to seed in the new code.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent
ROOT: Final = FOLDER.parents[1]
LAYER: Final = Path("layers/mcp_roundtrip")

_HEADING: Final = "Caught by:"


@dataclass(frozen=True)
class Fault:
    """A fault in the layer. `tests` are pytest's node ids, without parameters."""

    path: Path
    description: str
    tests: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Fault:
        text, _, _ = path.read_text("utf-8").partition("\ndiff --git ")
        description, _, tests = text.partition(f"\n\n{_HEADING}\n")
        return cls(path, " ".join(description.split()), tuple(tests.split()))

    @property
    def name(self) -> str:
        """The part of the layer, and the behaviour: `state/a-state-is-opened-after-its-flow-has-ended`."""
        return self.path.relative_to(FOLDER).with_suffix("").as_posix()

    def apply(self, folder: Path, *options: str) -> bool:
        """Apply the patch to a folder with the layer; return whether it fits. `--check` changes nothing."""
        # Within a repository, git would skip the files outside of the current folder and report success.
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}
        command = ["git", "apply", *options, str(self.path)]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
        return done.returncode == 0


def find_faults(*parts_of_names: str) -> Iterator[Fault]:
    """Yield the faults whose names contain one of the texts; without a text, all."""
    for path in sorted(FOLDER.glob("*/*.patch")):
        fault = Fault.read(path)
        if not parts_of_names or any(part in fault.name for part in parts_of_names):
            yield fault
