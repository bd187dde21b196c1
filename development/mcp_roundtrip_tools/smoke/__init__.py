"""Checks of a deployed endpoint from the outside: `make smoke`.

The checks go from the network to a whole call. Each finding is one sentence; a wrong one says what to change.
The official Python client sends the requests for tools.
"""
