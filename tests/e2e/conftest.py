"""template.yaml for tests of clients, served once for each module."""

import pytest

from support.served_application import serve_anonymously


@pytest.fixture(scope="module")
def application():
    with serve_anonymously() as served:
        yield served


@pytest.fixture
def served(application):
    """Return the application without the log lines of earlier tests."""
    application.lines.clear()
    return application
