"""What functions return, as MCP has it: content blocks, results of tools, messages and resource contents.

`output` writes the results of tools. `member_checks` checks members of blocks, and with `metadata` those of
definitions. `block_base` needs no dataclasses: most tools return no block.
"""
