import pytest

from support.sam_build import SAM, sam_build


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: builds the application; the second run finds it built")


@pytest.fixture(scope="session", autouse=True)
def _sam_is_installed():
    assert SAM.exists(), f"{SAM} does not exist: `make test` installs it"


@pytest.fixture(scope="session")
def built():
    return sam_build()
