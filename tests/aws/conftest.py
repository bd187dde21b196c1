import pytest

from mcp_roundtrip_local.services.kms import FakeKms
from mcp_roundtrip_testing import FakeClock
from support.kms_clients import running
from support.tokens import NOW


@pytest.fixture
def fake():
    """A strict KMS, to look at and to break."""
    return FakeKms()


@pytest.fixture
def kms(fake):
    """A real client of it, over HTTP."""
    with running(fake) as connected:
        yield connected


@pytest.fixture
def clock():
    """Stands at the first second of an epoch."""
    return FakeClock(NOW)
