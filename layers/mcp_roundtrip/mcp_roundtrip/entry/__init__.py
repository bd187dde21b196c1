"""Lambda handlers of servers, front doors and workers; the only part that imports `wiring` and `adapters`."""
