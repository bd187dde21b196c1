import pytest

from mcp_roundtrip_testing import FakeClock
from support.aws_clients import DEFAULT_KIND
from support.fake_kms import FailingKms
from support.kms_clients import deployment, running
from support.tokens import CONFIGURATIONS, NOW


@pytest.fixture
def strict_kms():
    """Return a strict KMS, to inspect and to make fail."""
    return FailingKms()


@pytest.fixture
def kind():
    """Return the kind of the clients. Modules override it to test both."""
    return DEFAULT_KIND


@pytest.fixture
def kms(strict_kms, kind):
    with running(strict_kms, kind) as connected:
        yield connected


@pytest.fixture
def clock():
    """Return a clock at the first second of an epoch."""
    return FakeClock(NOW)


@pytest.fixture(params=CONFIGURATIONS, ids=str)
def configuration(request):
    return request.param


@pytest.fixture
def deployed(configuration, kms):
    return deployment(kms, configuration)
