"""What all tests have: one Hypothesis profile, and an end that stops what they started."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

# Plugins in `support` are imported by helpers as well, whichever test module comes first.
pytest.register_assert_rewrite("support")

# A termination ends the run as Ctrl-C does, through all fixtures: they stop what they started.
signal.signal(signal.SIGTERM, signal.default_int_handler)

# Shared machines are slow at times, and that is no failure.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

pytest_plugins = ["support.every_response"]
