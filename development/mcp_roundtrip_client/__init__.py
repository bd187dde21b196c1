"""MCP over plain HTTP, with the standard library: for `make call` and `make smoke`.

The official client hides the status, the headers and the messages of a stream, and its import takes a second.
"""
