"""Python types, JSON Schema and the validation of values.

- Signatures: `signature`, `docstring`, `arguments`, `string_arguments`, `raw_arguments`, `mcp_header`.
- Schemas: `json_schema`, `forms`, `form_schema`, `output`, `subschemas`.
- Accepted values: `exact_reader` reads with pydantic's strict mode where `strict_mode` says that it is exact,
  and else asks `schema_validator`, which jsonschema-rs runs; `explanation` finds the reasons of a refusal.
  `bounded_validation`, `long_inputs` and `patterns` bound memory and time; `ecma_patterns` has the syntax of
  patterns, and `booleans` keeps booleans and numbers apart in unions.
- Results: `block_base`, `content_blocks`, `resource_contents`, `prompt_messages`, `step_values`,
  `plain_types`.
- Messages to authors: `type_errors`, `json_errors`, `metadata`, `member_checks`.

Nothing here imports the engine or the server. Importing a module imports pydantic at most;
`schema_validator` imports jsonschema-rs.
"""
