"""Writes the sample events in `events/`."""
