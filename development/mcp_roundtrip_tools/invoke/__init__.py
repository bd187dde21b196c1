"""Run a function of template.yaml with an event, without Docker. `next_event` makes the next round's."""
