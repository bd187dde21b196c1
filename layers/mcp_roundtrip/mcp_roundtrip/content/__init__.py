"""What functions return, as MCP has it: content blocks, results of tools, messages and resource contents.

`output` writes the results of tools. `members` checks the members of blocks and of definitions. `block_base`
needs no dataclasses: most tools return no block.
"""
