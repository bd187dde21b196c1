"""The command ``mcp-roundtrip lint``: finds code that differs when a tool is replayed.

It reads the syntax tree only: no module of the author is imported or run.

- `__main__`: the command line
- `findings`: a finding, a rule
- `source`: a parsed module: its parents, its imports, its comments
- `contexts`: the functions that have a context, and what they call on it
- `reachability`: whether a call of the context can run after a line
- `suppressions`: ``# noqa: MRT001 reason``
- `rules`: one module for each idea; `rules.RULES` is the table
- `checking`: applies the rules to files
"""
