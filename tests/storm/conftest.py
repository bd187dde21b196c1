"""The process that forks the workers of a module."""

from collections.abc import Iterator

import pytest

from storm.processes import Zygote


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.close()
