import pytest

from mcp_roundtrip_local.services.kms import FakeKms
from mcp_roundtrip_testing import FakeClock
from support.kms_clients import running
from support.tokens import NOW


@pytest.fixture
def strict_kms():
    """Return a strict KMS, to inspect and to make fail."""
    return FakeKms()


@pytest.fixture
def kms(strict_kms):
    """Return a boto3 client of the strict KMS, over HTTP."""
    with running(strict_kms) as connected:
        yield connected


@pytest.fixture
def clock():
    """Return a clock at the first second of an epoch."""
    return FakeClock(NOW)
