"""What `make call`, `make smoke` and `make run` share: MCP over plain HTTP, and text for a terminal.

It needs only the standard library: the official client hides the status, the headers and the messages of a
stream, and its import takes a second.
"""
