"""Run a function of template.yaml with an event, without Docker. `rounds` makes the next round's event."""
