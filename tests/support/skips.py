"""A pytest plugin with the permitted reasons for skips. A skip for any other reason is a failure."""

import shutil
from collections.abc import Generator
from pathlib import Path
from typing import NoReturn

import pytest

LINUX = "needs Linux"
NODE = "needs Node.js 20 or later, with npm"
RUNTIME = "needs the interpreter of the runtime"
DEPLOYED = "needs a Python that functions are deployed on"
NEWER_PYTHON = "needs Python 3.12 or later"
HISTORY = "needs the repository's history"

PERMITTED = {
    LINUX: "the layer's wheels, AWS's emulator and /proc exist on Linux only; CI is Linux",
    NODE: "`make test` cannot install Node.js itself; it says so, and installs what runs on it",
    RUNTIME: "the artefact is tried with every runtime whose interpreter is installed; CI has all three",
    DEPLOYED: "an author may have Python 3.11, on which functions are not deployed; CI has later ones",
    NEWER_PYTHON: "an author may have Python 3.11, which lacks what the test is about; CI has later ones",
    HISTORY: "an archive or a shallow clone has no revision to compare with",
}
"""Reason -> why a run without the test is acceptable."""


def skip(reason: str, detail: str) -> NoReturn:
    """Skip the test for a permitted reason. `detail` names what is missing."""
    pytest.skip(f"{reason}: {detail}")


def find_node(detail: str, *packages: Path) -> str:
    """Return the path of Node.js. Skip the test if it, or one of these packages, is missing."""
    node = shutil.which("node")
    if node is None or not all(package.exists() for package in packages):
        skip(NODE, detail)
    return node


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        assert isinstance(report.longrepr, tuple)
        _, _, message = report.longrepr
        reason = message.removeprefix("Skipped: ")
        if not reason.startswith(tuple(PERMITTED)):
            report.outcome = "failed"
            report.longrepr = f"{__name__} does not permit to skip {item.nodeid} because: {reason}"
    return report
