"""Typed input: arguments of authors' functions, and answers of forms, from JSON.

`typed_arguments` are those of tools, prompts and URI templates, and `raw_arguments` those of tools with a
JSON Schema of their own. `plain_types` reads them without pydantic, `input_schema` with it. `signature` and
`docstring` read functions, `mcp_header` the parameters that clients repeat as HTTP headers.
`elicitation_form` asks a user for a value of a type.
"""
