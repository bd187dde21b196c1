"""The command ``mcp-roundtrip lint``: finds code that differs when a tool is replayed.

It reads the syntax tree only: no module of the author is imported or run.

- `__main__`: the command line
- `findings`: a finding, a rule
- `source`: a parsed module: its parents, its imports, its comments
- `contexts`: the functions that have a context, and what they call on it
- `definitions`: the function that a call runs, also in another module of the folder
- `reachability`: whether a call of the context can run after a line
- `suppressions`: ``# noqa: MRT001 reason``
- `rules`: one module for each idea; `rules.RULES` is the table
- `reading`: which modules there are, and why one cannot be read
- `checking`: applies the rules to files
"""
