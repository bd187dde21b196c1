"""JSON Schema, and values that a schema decides about.

- Schemas: `json_schema_generator` builds them for types, `subschemas` walks them. `patterns` and
  `unusable_types` say what is refused when a tool is defined.
- Accepted values: for plain types (`pydantic_core_schemas`), `input_reader` asks pydantic alone. For others,
  `json_schema_validator` runs jsonschema-rs, then `pydantic_validator` makes the typed value.
  `json_schema_errors` has the reasons of a refusal, in the words of `error_texts`. For lenient arguments,
  the reader also takes JSON that models write as text.
- Bounds: `validation_cost`, for the time of a value and of the reasons of its refusal.
- Values as JSON: `serialization`.

Only `json_schema_validator` and `patterns` import jsonschema-rs.
"""
