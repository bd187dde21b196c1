"""Writes the sample events in `events/`, one folder for each function.

`stable` has the events that never change, `live` those with a `requestState` that expires. `messages` builds
MCP messages and their events in payload format 2.0; `sources` converts them for other event sources.
"""
