"""Writes sample events to `events/`, one folder for each function."""
