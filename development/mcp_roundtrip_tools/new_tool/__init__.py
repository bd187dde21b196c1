"""Writes a new tool: a function that asks one question, its test, its events and its template entry."""
