"""What the tests of the server share."""

import pytest

from mcp_roundtrip.protocol.constants import LEGACY_VERSION, PROTOCOL_VERSION
from support.deployment import Deployment
from support.task_tools import no_step_ran  # noqa: F401 - a fixture of each test


@pytest.fixture
def deployment(request: pytest.FixtureRequest) -> Deployment:
    """The `server` of the module, and a caller whose client answers questions and follows tasks."""
    return Deployment(request.module.server)


@pytest.fixture(params=[False, True], ids=["direct", "through the front door"])
def through_door(request: pytest.FixtureRequest) -> bool:
    """Whether a caller reaches the server through a front door."""
    return bool(request.param)


@pytest.fixture(params=[PROTOCOL_VERSION, LEGACY_VERSION, "2025-06-18"])
def version(request: pytest.FixtureRequest) -> str:
    """The version of a client: of a round trip, or one that opens with `initialize`."""
    return str(request.param)
