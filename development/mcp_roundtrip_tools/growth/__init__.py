"""Grow an application: `mcp-roundtrip new-tool`, `mcp-roundtrip new-function` and `mcp-roundtrip add`.

- `new_tool_and_function`: a tool as a module of an existing function, which gets a worker with the first tool
  with tasks; or a function with a role of its own, and with the second one the front door
- `add_pipeline_or_edge`: a part that not every application needs, of the files in `parts/`
- `written_files`: what a tool consists of, and the names that it cannot have; writes all files, or none
- `entries`: edits of template.yaml that keep its comments and its layout
"""
