"""The process that forks the workers of a module."""

import pytest

from storm.processes import Zygote


@pytest.fixture(scope="module")
def zygote():
    zygote = Zygote()
    yield zygote
    zygote.close()
