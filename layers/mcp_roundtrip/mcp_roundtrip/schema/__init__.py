"""JSON Schema, and values that a schema decides about.

- Schemas: `json_schema` builds them for types, `subschemas` walks them, `model_limits` has what models
  refuse.
- Accepted values: `exact_reader` asks `schema_validator`, which runs jsonschema-rs, then `typed_validator`,
  which makes the typed value. For plain types (`core_schemas`), pydantic alone
  decides. `explanation` has the reasons of a refusal, in the words of `problem_texts`.
- Bounds: `patterns`, `validation_cost`, and `unusable_types`, which are refused at definition.
- Values as JSON: `type_adapters`, and `json_errors` for those that JSON cannot hold.

Importing a module imports pydantic at most; `schema_validator` imports jsonschema-rs.
"""
