"""What functions return, as MCP has it: content blocks, results of tools, messages and resource contents."""
