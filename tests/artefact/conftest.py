"""The built artefact: `make e2e` runs these tests by themselves, `make test` with all others."""

import sys

import pytest

from mcp_roundtrip_tools.run.services import ministack
from support import aws_account, skips
from support.sam_build import SAM, sam_build


@pytest.fixture(scope="session", autouse=True)
def required_tools():
    if sys.platform != "linux":
        skips.skip(skips.LINUX, "the built layer and AWS's emulator")
    for tool in (SAM, ministack.PYTHON):
        assert tool.exists(), f"{tool} does not exist: `make e2e` installs it"


@pytest.fixture(scope="session")
def account(tmp_path_factory):
    with aws_account.running(tmp_path_factory.mktemp("account")) as running:
        yield running


@pytest.fixture(scope="session")
def built():
    return sam_build()
