"""Python types, JSON Schema and the validation of values.

- Signatures: `signature`, `docstring`, `arguments`, `string_arguments`, `raw_arguments`, `mcp_header`.
- Schemas: `json_schema`, `forms`, `form_schema`, `output`, `subschemas`.
- Accepted values: `exact_reader` reads with pydantic's strict mode where `strict_mode` says that it is exact,
  and else checks the JSON Schema with `json_schema_check`. `bounded_validation`, `long_inputs` and `patterns`
  bound memory and time; `jsonschema_keywords` and `jsonschema_budget` do so for authors' own schemas.
- Results: `block_base`, `content_blocks`, `resource_contents`, `prompt_messages`, `step_values`,
  `revalidation`.
- Messages to authors: `type_errors`, `json_errors`, `metadata`, `member_checks`.

Nothing here imports the engine or the server. Importing a module imports pydantic at most.
"""
