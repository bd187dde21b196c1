"""JSON Schema, and values that a schema decides about.

- Schemas: `json_schema` builds them for types, `subschemas` walks them.
- Accepted values: for plain types (`core_schemas`), `exact_reader` asks pydantic alone. For others,
  `checked_reader` asks `schema_validator`, which runs jsonschema-rs, then `typed_validator`, which makes the
  typed value. `explanation` has the reasons of a refusal, in the words of `problem_texts`.
- Bounds: `patterns`, `validation_cost`, `input_limits`; `unusable_types` are refused at definition.
- Values as JSON: `type_adapters`.

Only `checked_reader` and `schema_validator` import jsonschema-rs.
"""
