"""template.yaml for tests of clients, served once for each module."""

from collections.abc import Iterator

import pytest

from support.served_application import Served, serve_anonymously


@pytest.fixture(scope="module")
def application() -> Iterator[Served]:
    with serve_anonymously() as served:
        yield served


@pytest.fixture
def served(application: Served) -> Served:
    """Return the application without the log lines of earlier tests."""
    application.lines.clear()
    return application
