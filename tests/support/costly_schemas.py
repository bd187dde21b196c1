"""The schemas of the exposed server that are costly to check: importing the server takes half a second."""

from typing import Any

SEARCH = r"\w{1,100}-"
"""A common pattern that keeps an engine in 100 states, because a match can begin anywhere."""

NESTED = "(a{1,90}){1,20}[bc]"

MEMBERS = [f"a{number:07}" for number in range(40)]
"""Names of members that require each other."""

OPTIONS = [f"option {number}" for number in range(9_000)]
OBJECT = {"type": "object", "properties": {name: {"type": "integer"} for name in OPTIONS[:800]}}
"""What a refusal would copy into each of its errors."""

STRICT_OBJECTS = {
    "type": "object",
    "properties": {
        "items": {
            "type": "array",
            "items": {"type": "object", "required": list("abcdefgh"), "additionalProperties": False},
        }
    },
}

RAW: dict[str, dict[str, Any]] = {
    "raw_objects": STRICT_OBJECTS,
    "raw_unique": {"type": "object", "properties": {"items": {"type": "array", "uniqueItems": True}}},
    "raw_pattern": {
        "type": "object",
        "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}},
        "patternProperties": {"^(x+)+y$": {"type": "integer"}},
        "additionalProperties": False,
    },
    "raw_counted": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "pattern": SEARCH},
            "counted": {"pattern": NESTED, "type": "string", "maxLength": 800},
            "either": {"anyOf": [{"pattern": SEARCH}, {"pattern": "a[ab]{900}c"}]},
        },
        "patternProperties": {r"(\w?){100}-": {"type": "integer"}},
    },
    "raw_branches": {
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "array", "items": {"$ref": "#/properties/one"}},
                {"type": "array", "items": {"type": "object", "required": list("abcdefgh")}},
                {"type": "array", "contains": {"const": {"a": 1}}},
            ]
        },
        "properties": {"one": {"oneOf": [{"type": "integer", "multipleOf": 0.1}, {"enum": [[], {}, 1]}]}},
    },
    "raw_recursive": {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "$defs": {
            "node": {
                "anyOf": [
                    {"properties": {"child": {"$ref": "#/$defs/node"}, "a": {"type": "integer"}}},
                    {"properties": {"child": {"$ref": "#/$defs/node"}, "b": {"type": "integer"}}},
                ],
                "type": "object",
                "unevaluatedProperties": False,
            }
        },
    },
    "raw_unevaluated": {
        "type": "object",
        "patternProperties": {"^a": True},
        "unevaluatedProperties": False,
        "properties": {"items": {"contains": {"type": "integer"}, "unevaluatedItems": False}},
    },
    "raw_names": {
        "type": "object",
        "properties": {
            "items": {"propertyNames": {"pattern": "^[a-z]+$"}},
            "last": {
                "patternProperties": {f"^x{n}$": {"type": "integer"} for n in range(30)},
                "additionalProperties": {"type": "integer"},
            },
        },
    },
    "raw_options": {"type": "object", "properties": {"items": {"items": {"enum": OPTIONS}}}},
    "raw_alternatives": {
        "type": "object",
        "properties": {"items": {"items": {"anyOf": [OBJECT, {"required": ["a"], **OBJECT}]}}},
    },
    "raw_optional": {
        "type": "object",
        "properties": {f"{number:07}": {"type": "integer", "default": 1} for number in range(900)},
        "required": [f"required {number}" for number in range(900)],
    },
    "raw_dependent": {
        "type": "object",
        "properties": {
            "items": {"items": {"anyOf": [{"dependentRequired": dict.fromkeys(MEMBERS, MEMBERS)}]}}
        },
    },
    "raw_numbers": {
        "type": "object",
        "properties": {"items": {"items": {"minimum": 0, "maximum": 1e300, "multipleOf": 0.01}}},
    },
    "raw_decimals": {
        "type": "object",
        "properties": {"items": {"items": {"allOf": [{"multipleOf": 0.001} for _ in range(39)]}}},
    },
    "raw_references": {
        "type": "object",
        "properties": {
            "items": {"anyOf": [{"$ref": "#/$defs/wide"} for _ in range(900)]},
            "texts": {"anyOf": [*({"items": {"format": "base64"}} for _ in range(30)), True]},
        },
        "$defs": {
            "wide": {"properties": {f"a{n}": {"type": "integer"} for n in range(900)}, "minProperties": 2}
        },
    },
    "raw_levels": {
        "type": "object",
        "properties": {"items": {"items": {"$ref": "#/$defs/level0"}}},
        "$defs": {
            **{
                f"level{n}": {"anyOf": [{"properties": {"a": {"$ref": f"#/$defs/level{n + 1}"}}}] * 3}
                for n in range(6)
            },
            "level6": {"type": "integer"},
        },
    },
}
