"""Arguments of authors' functions: signatures, inputSchema, and keyword arguments from JSON.

`typed_arguments` are those of tools, `string_arguments` those of prompts and URI templates, and
`raw_arguments` those of tools with a JSON Schema of their own. `signature` and `docstring` read functions,
`mcp_header` the parameters that clients repeat as HTTP headers.
"""
