"""The command ``mcp-roundtrip lint``: finds code that differs when a tool is replayed.

It reads the syntax tree only: no module of the author is imported or run.

- `parsed_module`: its syntax tree with parents, its imports, its variables
- `name_resolution`: what a name means, also in another module of the folder
- `contexts`: the functions that have a context, and what they call on it
- `control_flow`: whether a call of the context can run after a line
- `rules`: one module for each idea; `rules.RULES` is the table
- `checking`: applies the rules to files, and ``# noqa: MRT001 reason`` suppresses what they find
"""
