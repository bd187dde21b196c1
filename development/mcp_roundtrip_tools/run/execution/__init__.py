"""Runs functions in runtime processes: execution environments, and their pools."""
