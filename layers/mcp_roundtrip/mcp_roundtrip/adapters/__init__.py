"""Event sources: `detect` finds that of an event, and `event_formats` has the adapter of each."""
