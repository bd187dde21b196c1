"""Serves clients that open with `initialize` (2025-06-18 and 2025-11-25): no sessions and no stored state."""
