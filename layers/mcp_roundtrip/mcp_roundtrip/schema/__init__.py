"""Types in, JSON Schema out, values checked.

Nothing here knows the engine or the server, and importing a module imports pydantic at most.
"""
