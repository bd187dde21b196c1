"""Checks of a deployed endpoint from the outside, from the network to a whole call: `make smoke`.

Each finding is one sentence; a wrong one says what to change.
"""
