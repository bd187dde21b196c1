"""What the tests of the server share."""

import pytest

from support.deployment import Deployment
from support.task_tools import no_step_ran  # noqa: F401 - a fixture of each test


@pytest.fixture
def deployment(request: pytest.FixtureRequest) -> Deployment:
    """The `server` of the module, and a caller whose client answers questions and follows tasks."""
    return Deployment(request.module.server)
