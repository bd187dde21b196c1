"""Replace platform/ by that of the installed package: `mcp-roundtrip upgrade`.

- `__main__`: the command
- `versions`: the version of a platform, beside that of the package
- `differences`: what changes for the application
"""
