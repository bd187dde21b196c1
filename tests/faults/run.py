"""`make faults`: seed each fault in a copy of the layer, and say how many of its tests notice it.

The copy comes before the installed layer on the path of the tests, and of the processes that inherit their
environment. First the same tests run without a fault: they must pass.
"""

import argparse
import os
import shutil
import signal
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

TIMEOUT_S = 300

FAILED = frozenset({"failure", "error"})
"""The results of a test that fails, in a report of JUnit."""

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
    faults, tried = list(find_faults(*options.names)), options.tests.split()
    if not faults:
        parser.error("no fault has such a name")
    started, cores = time.monotonic(), os.cpu_count()
    with copied_layer() as layer:
        check_import(layer)
        listed = tried or sorted({test for fault in faults for test in fault.tests})
        # A listed test that is skipped catches nothing.
        unwanted = FAILED if tried else FAILED | {"skipped"}
        if found := run_tests(layer, listed, f"--numprocesses={cores}", "--dist=loadfile", unwanted=unwanted):
            sys.exit("\n".join(["These tests do not pass without a fault:", *found]))
    print(f"The tests pass without a fault ({time.monotonic() - started:.0f} s).", flush=True)
    with ThreadPoolExecutor(cores) as threads:
        caught = list(threads.map(lambda fault: report(fault, tried), faults))
    print(f"{sum(caught)} of {len(caught)} faults are caught ({time.monotonic() - started:.0f} s).")
    return 0 if all(caught) else 1


def report(fault: Fault, tried: Sequence[str]) -> bool:
    """Seed a fault, print which of its tests, or of those `tried`, notice it; return whether any did."""
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
    half_written = shutil.ignore_patterns("*.pyc.*")  # by tests that run at the same time
    with tempfile.TemporaryDirectory(prefix="fault-") as folder:
        layer = Path(folder) / LAYER
        shutil.copytree(ROOT / LAYER / "mcp_roundtrip", layer / "mcp_roundtrip", ignore=half_written)
        if fault is not None and not fault.apply(Path(folder)):
            raise NotRun("the patch does not apply")
        yield layer


def environment(layer: Path) -> Mapping[str, str]:
    """Return the variables of tests that import a copy of the layer, and keep no examples of a fault."""
    hypothesis = str(layer.parent / "hypothesis")
    return {**os.environ, "PYTHONPATH": str(layer), "HYPOTHESIS_STORAGE_DIRECTORY": hypothesis}


def check_import(layer: Path) -> None:
    """End the program if the installed layer comes before the copy."""
    command = [sys.executable, "-c", "import mcp_roundtrip; print(mcp_roundtrip.__file__)"]
    found = subprocess.run(command, env=environment(layer), capture_output=True, text=True, check=True).stdout
    if not found.startswith(str(layer)):
        sys.exit(f"The tests import {found.strip()} in place of the copy.")


def run_tests(
    layer: Path, tests: Sequence[str], *options: str, unwanted: frozenset[str] = FAILED
) -> Mapping[str, float]:
    """Run tests with a copy of the layer; return the seconds of those with unwanted results.

    Raises NotRun.
    """
    results = layer / "results.xml"
    command = [sys.executable, "-m", "pytest", *tests, *options, "--tb=no", "-p", "no:cacheprovider"]
    command += [SAME_EXAMPLES, f"--junitxml={results}"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(layer),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a group of processes, with the servers that tests have started
    ) as running:
        try:
            output, _ = running.communicate(timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            raise NotRun(f"the tests do not end within {TIMEOUT_S} s") from None
    if running.returncode not in (
        0,
        1,
    ):  # 1: a test failed; others: a file could not be imported, for example
        raise NotRun(f"the tests did not run:\n{output[-4000:]}")
    return {
        node_id(case): float(case.get("time", 0))
        for case in ElementTree.parse(results).iter("testcase")
        if unwanted & {child.tag for child in case}
    }


def node_id(case: ElementTree.Element) -> str:
    """Return the node id of a test in a JUnit report, without parameters."""
    path = case.get("classname", "").replace(".", "/")
    return f"{path}.py::{case.get('name', '').partition('[')[0]}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except NotRun as error:
        sys.exit(f"Without a fault: {error}")
