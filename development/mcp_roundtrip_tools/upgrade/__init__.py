"""Replace platform/ by that of the installed package: `mcp-roundtrip upgrade`."""
