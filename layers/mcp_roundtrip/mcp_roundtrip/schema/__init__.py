"""JSON Schema, and values that a schema decides about.

- Schemas: `json_schema_generator` builds them for types, `subschemas` walks them. `pattern_checks` and
  `unusable_types` refuse patterns and types when a tool is defined.
- Accepted values: `input_validation` lets pydantic read plain types (`core_schema_traversal`). For others,
  `json_schema_validator` runs jsonschema-rs, then `pydantic_validator` makes the typed value.
  `explain_invalid_json` finds the reasons of a refusal, `error_texts` words them.
- Bounds: `validation_cost` limits the time to check a value and to explain its refusal.
- Values as JSON: `serialization`.

Only `json_schema_validator` and `pattern_checks` import jsonschema-rs.
"""
