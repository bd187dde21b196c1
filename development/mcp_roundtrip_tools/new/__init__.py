"""Write a new application: `mcp-roundtrip new`. `application/` has its files, which `sam init` reads, too."""
