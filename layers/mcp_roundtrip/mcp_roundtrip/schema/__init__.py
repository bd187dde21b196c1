"""Python types, JSON Schema and the validation of values.

- Signatures: `signature`, `docstring`, `arguments`, `string_arguments`, `raw_arguments`, `mcp_header`.
- Schemas: `json_schema`, `forms`, `form_schema`, `output`, `subschemas`.
- Accepted values: `exact_reader` asks `schema_validator`, which runs jsonschema-rs, then `typed_validator`,
  which makes the typed value, of a union by `union_choices`. For `plain_types`, pydantic alone decides.
  `explanation` has the reasons of a refusal, in the words of `keyword_texts`, `patterns` their syntax and
  their time, `unusable_types` what is refused at definition.
- Results: `block_base`, `content_blocks`, `resource_contents`, `prompt_messages`, `step_values`.
- Messages to authors: `type_errors`, `json_errors`, `metadata`, `member_checks`, `model_limits`.

Nothing here imports the engine or the server. Importing a module imports pydantic at most;
`schema_validator` imports jsonschema-rs.
"""
