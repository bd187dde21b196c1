"""The stand-ins of the services that the examples call.

A pytest plugin: functions that a test runs in its own process find the stand-ins' addresses in the
environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from mcp_roundtrip_local.services.stand_ins import serve_stand_ins
from support.project import FUNCTIONS


@pytest.fixture(scope="module")
def example_services() -> Iterator[None]:
    with serve_stand_ins(FUNCTIONS.parent / "template.yaml") as variables, patch.dict(os.environ, variables):
        yield
