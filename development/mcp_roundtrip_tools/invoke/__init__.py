"""Runs a function of template.yaml with an event, without Docker.

`running_app` asks a `make run`, `one_run` starts what the function needs. `rounds` makes the event of the
next round.
"""
