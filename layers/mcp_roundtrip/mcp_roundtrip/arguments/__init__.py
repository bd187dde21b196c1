"""Typed input: arguments of authors' functions, and answers of forms, from JSON.

`typed_arguments` has the arguments of tools, prompts and URI templates, and `own_input_schema` those of tools
whose author writes the JSON Schema. `plain_json_types` reads the types that JSON has, `pydantic_types`
reads all others and builds the `inputSchema` of every typed function.
`signature` and `docstring` read functions, `mcp_header` the parameters that clients repeat as HTTP headers.
`elicitation_form` asks a user for a value of a type.
"""
