"""The example functions."""

from pathlib import Path

FUNCTIONS = Path(__file__).parents[2] / "functions"
