"""The replay engine: runs a tool's body against a journal of what already happened.

The same body runs on every round. Answers and step results that are journaled are handed back; the first
thing that has not happened yet suspends the run. `run` holds the rules and knows neither threads nor
sockets; `context` and `async_context` are what a tool's author sees of it; `replay` and `async_replay`
drive the body.
"""
