"""Writes a new tool (`make new-tool`)."""
