"""Checks of a deployed endpoint from the outside: `make smoke`.

The checks go from the network to a whole call. Each finding is one sentence; a wrong one says what to change.
The last check repeats the call with the official Python client, as released.
"""
