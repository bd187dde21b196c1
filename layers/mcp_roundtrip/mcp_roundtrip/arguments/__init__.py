"""Typed input: arguments of authors' functions, and answers of forms, from JSON.

`typed_arguments` has the arguments of tools, prompts and URI templates, `raw_arguments` those of tools with
their own JSON Schema. `json_types` reads those of simple types, `parameter_types` all others.
`signature` and `docstring` read functions, `mcp_header` the parameters that clients repeat as HTTP headers.
`elicitation_form` asks a user for a value of a type.
"""
