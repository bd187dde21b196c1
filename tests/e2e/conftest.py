"""template.yaml for tests of clients, served once for each module."""

from collections.abc import Mapping
from typing import Any

import pytest

from mcp_roundtrip_tools.catalog.catalog import catalog_lists, load_function_servers
from support.project import FUNCTIONS
from support.served_application import serve_anonymously


@pytest.fixture(scope="module")
def served():
    with serve_anonymously() as running:
        yield running


@pytest.fixture(scope="module")
def catalog() -> Mapping[str, Any]:
    """What the functions have, by the lists of the front door's catalog."""
    return catalog_lists(load_function_servers(FUNCTIONS))
