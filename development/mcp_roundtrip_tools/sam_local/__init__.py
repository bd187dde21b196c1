"""Prepares `sam local`: an emulator in a Docker network, the variables of the functions, and live events."""
