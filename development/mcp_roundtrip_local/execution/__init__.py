"""Runs functions: execution environments, their pools, the debugger."""
