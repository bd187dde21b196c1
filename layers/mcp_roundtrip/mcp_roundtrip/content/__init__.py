"""The values of functions in MCP: content blocks, results of tools, messages and resource contents."""
