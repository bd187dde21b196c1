"""A pytest plugin: the modules of benchmarks/ can be imported by the tests of one module."""

import sys
from collections.abc import Iterator

import pytest

from support.project import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def benchmarks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield
    for path in BENCHMARKS.glob("*.py"):
        sys.modules.pop(path.stem, None)
