"""Writes sample events to `events/`, one folder for each function. `messages` builds MCP messages."""
