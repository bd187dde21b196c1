"""`make faults`: seed each fault in a copy of the layer, and say how many of its tests notice it.

The copy comes before the installed layer on the path of the tests, and of the processes that inherit their
environment. First the same tests run without a fault: they must pass.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from faults.seeded import LAYER, ROOT, Fault, find_faults

TIMEOUT_S = 600

SAME_EXAMPLES = "--hypothesis-seed=0"
"""With and without a fault, so that a test that fails on a rare example does not seem to catch a fault."""


class NotRun(Exception):
    """The tests were not run to their end. The text says why."""


def main() -> int:
    """Run the command line, and return the exit status: 1 if a fault is not caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="only the faults whose names contain one of these")
    parser.add_argument("--tests", default="", help="try these files and folders, and list what catches it")
    options = parser.parse_args()
    faults = list(find_faults(*options.names))
    if not faults:
        parser.error("no fault has such a name")
    tried = options.tests.split()
    started = time.monotonic()
    try:
        failed = run_without_fault(tried or sorted({test for fault in faults for test in fault.tests}))
    except NotRun as error:
        print(f"Without a fault: {error}")
        return 1
    if failed:
        print("These tests fail without a fault:", *failed, sep="\n")
        return 1
    print(f"The tests pass without a fault ({time.monotonic() - started:.0f} s).", flush=True)
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        caught = list(threads.map(lambda fault: report(fault, tried), faults))
    print(f"{sum(caught)} of {len(caught)} faults are caught ({time.monotonic() - started:.0f} s).")
    return 0 if all(caught) else 1


def run_without_fault(tests: Sequence[str]) -> Mapping[str, float]:
    """Run tests with an unchanged copy of the layer, in parallel. Raises NotRun."""
    with copied_layer() as layer:
        check_import(layer)
        return run_tests(layer, tests, f"--numprocesses={os.cpu_count()}", "--dist=loadfile")


def report(fault: Fault, tried: Sequence[str]) -> bool:
    """Try a fault, print the result, and return whether a test noticed it."""
    started = time.monotonic()
    try:
        with copied_layer(fault) as layer:
            failed = run_tests(layer, tried or fault.tests, *(["--maxfail=20"] if tried else []))
    except NotRun as error:
        print(f"{fault.name}: {error}", flush=True)
        return False
    count = f"{len(failed)}" if tried else f"{len(failed)} of {len(fault.tests)}"
    verdict = f"caught by {count}" if failed else "NOT CAUGHT"
    fastest = sorted(failed, key=failed.__getitem__) if tried else []
    lines = [f"{fault.name}: {verdict} in {time.monotonic() - started:.1f} s", *fastest]
    print("\n".join(lines), flush=True)
    return bool(failed)


@contextmanager
def copied_layer(fault: Fault | None = None) -> Iterator[Path]:
    """Copy the layer into a temporary folder, with a fault. Raises NotRun if its patch does not fit."""
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        layer = Path(folder) / LAYER
        shutil.copytree(ROOT / LAYER / "mcp_roundtrip", layer / "mcp_roundtrip")
        if fault is not None and not fault.apply(Path(folder)):
            raise NotRun("the patch does not apply")
        yield layer


def check_import(layer: Path) -> None:
    """Raise NotRun if the installed layer comes before the copy."""
    command = [sys.executable, "-c", "import mcp_roundtrip; print(mcp_roundtrip.__file__)"]
    found = subprocess.run(command, env=environment_of(layer), capture_output=True, text=True, check=True)
    if not found.stdout.startswith(str(layer)):
        raise NotRun(f"the tests import {found.stdout.strip()}")


def run_tests(layer: Path, tests: Sequence[str], *options: str) -> Mapping[str, float]:
    """Run tests with a copy of the layer; return the seconds of those that fail. Raises NotRun."""
    results = layer / "results.xml"
    command = [
        sys.executable,
        "-m",
        "pytest",
        *tests,
        *options,
        "--tb=no",
        "-p",
        "no:cacheprovider",
        SAME_EXAMPLES,
    ]
    try:
        done = subprocess.run(
            [*command, f"--junitxml={results}"],
            cwd=ROOT,
            env=environment_of(layer),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotRun(f"the tests do not end within {TIMEOUT_S} s") from None
    if done.returncode not in (0, 1):  # 1: a test failed; others: a file could not be imported, for example
        raise NotRun(f"the tests did not run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    cases = ElementTree.parse(results).iter("testcase")
    return {node_id(case): float(case.get("time", 0)) for case in cases if is_failed(case)}


def environment_of(layer: Path) -> Mapping[str, str]:
    """Return the variables of tests that import a copy of the layer, and keep no examples of a fault."""
    hypothesis = str(layer.parent / "hypothesis")
    return {**os.environ, "PYTHONPATH": str(layer), "HYPOTHESIS_STORAGE_DIRECTORY": hypothesis}


def is_failed(case: ElementTree.Element) -> bool:
    return case.find("failure") is not None or case.find("error") is not None


def node_id(case: ElementTree.Element) -> str:
    """Return the node id of a test in a JUnit report, without parameters."""
    path = case.get("classname", "").replace(".", "/")
    return f"{path}.py::{case.get('name', '').partition('[')[0]}"


if __name__ == "__main__":
    sys.exit(main())
