"""Replace platform/ by that of the installed package: `mcp-roundtrip upgrade`.

- `__main__`: the command
- `differences`: what changes for the application
"""
