"""One Hypothesis profile for all: shared machines are slow at times, and that is no failure."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

pytest_plugins = ["support.every_response"]
