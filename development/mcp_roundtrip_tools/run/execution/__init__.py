"""Runs functions in runtime processes: execution environments, their pools, the debugger."""
