import pytest

from mcp_roundtrip_tools.call.fields import UNSET, Field, fields_of, split_words
from support.scripted_server import scripted

CITIES = {
    "oneOf": [{"const": "h1", "title": "Hyderabad, India"}, {"const": "h2", "title": "Hyderabad, Sindh"}]
}


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, " a b ", " a b "),
        ({"type": "string"}, "", ""),
        ({"type": "integer"}, " 7 ", 7),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "number"}, "12345678901234567890", 12345678901234567890),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "n", False),
        ({"enum": ["a", "b"]}, "2", "b"),
        ({"enum": ["2", "1"]}, "2", "2"),
        (CITIES, "1", "h1"),
        (CITIES, "h2", "h2"),
        (CITIES, "sindh", "h2"),
        ({"type": "array", "items": {"enum": ["a", "b", "c"]}}, "1, c", ["a", "c"]),
        ({"type": "array", "items": {"type": "integer"}}, "1,2", [1, 2]),
        ({"type": "array", "items": {"type": "string"}}, '["a, b"]', ["a, b"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "3", 3),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x", "x"),
        ({"type": "string", "format": "date"}, "2026-02-28", "2026-02-28"),
        # A text that fits no alternative is sent: the server explains them.
        ({"anyOf": [{"type": "number"}, {"type": "string", "pattern": "^[0-9.]+$"}]}, "much", "much"),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, '{"c": 1}', {"c": 1}),
        ({"type": "array", "items": {"oneOf": [{"required": ["a"]}]}}, "[{}]", [{}]),
    ],
)
def test_a_text_is_read_by_the_schema(schema, text, value):
    assert Field("name", schema, is_required=True).read(text) == value


@pytest.mark.parametrize(
    ("schema", "text", "reason"),
    [
        ({"type": "integer"}, "7.5", "whole number"),
        ({"type": "integer", "minimum": 1}, "0", "minimum of 1"),
        ({"type": "number", "maximum": 2}, "3", "maximum of 2"),
        ({"type": "number"}, "nan", "must be: number"),
        ({"type": "boolean"}, "maybe", "y or n"),
        ({"type": "string", "maxLength": 2}, "abc", "longer than 2"),
        ({"type": "string", "minLength": 1}, "", "needs a value"),
        ({"type": "string", "format": "date"}, "2026-02-30", "YYYY-MM-DD"),
        ({"type": "string", "format": "email"}, "ada", "email address"),
        ({"type": "string", "format": "uri"}, "example.com", "URL"),
        (CITIES, "3", "from 1 to 2"),
        (CITIES, "hyderabad", "2 choices; .*1 to 2"),
        (CITIES, "", "needs a value"),
        ({"type": "array", "items": {"enum": ["a"]}, "minItems": 2}, "1", "2 items"),
        # Arguments have no list with numbers above them.
        ({"type": "array", "items": {"enum": ["tea", "milk"]}}, "tea,mlk", "one of tea, milk"),
        ({"type": "object"}, "{", "JSON"),
    ],
)
def test_a_text_that_does_not_fit_is_refused(schema, text, reason):
    with pytest.raises(ValueError, match=reason):
        Field("name", schema, is_required=True).read(text)


def test_without_a_text_a_field_has_its_default_or_is_left_out():
    schema = {
        "properties": {"a": {"type": "integer", "default": 3}, "b": {"type": "string"}, "c": CITIES},
        "required": ["a"],
    }
    a, b, c = fields_of(schema)
    assert (a.read(""), b.read(""), c.read("")) == (3, UNSET, UNSET)
    assert (a.hint(), b.hint(), c.hint()) == ("[whole number, default 3]", "[optional]", "[1-2, optional]")
    assert Field("yes", {"type": "boolean", "default": True}, is_required=True).hint() == "[Y/n]"
    choices = {"type": "array", "items": CITIES}
    assert Field("cities", choices, is_required=True).hint() == "[numbers, separated by commas]"


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "array", "items": {"$ref": "#/$defs/Line"}}, '[{"size": "large"}]', [{"size": "large"}]),
        ({"type": "array", "items": {"$ref": "#/$defs/Size"}}, "2,small", ["large", "small"]),
        ({"$ref": "#/$defs/Line"}, '{"size": "small"}', {"size": "small"}),
    ],
)
def test_a_schema_may_refer_to_definitions_at_every_depth(schema, text, value):
    definitions = {
        "Size": {"type": "string", "enum": ["small", "large"]},
        "Line": {"type": "object", "properties": {"size": {"$ref": "#/$defs/Size"}}},
    }
    [field] = fields_of({"properties": {"name": schema}, "$defs": definitions})
    assert field.read(text) == value
    with pytest.raises(ValueError, match=r"not fit|from 1"):
        field.read(text.replace("small", "huge").replace("large", "huge"))


@pytest.mark.parametrize(
    ("draft", "schema", "text", "value"),
    [
        ("draft-04", {"type": "integer", "minimum": 1, "exclusiveMinimum": True}, "2", 2),
        ("draft-07", {"type": "array", "items": [{"type": "integer"}, {}]}, '[1, "x"]', [1, "x"]),
        ("draft-07", {"type": "array", "items": {"$ref": "#/definitions/Size"}}, "2,1", ["l", "s"]),
    ],
)
def test_a_schema_has_the_dialect_that_it_declares(draft, schema, text, value):
    declared = {
        "$schema": f"http://json-schema.org/{draft}/schema#",
        "definitions": {"Size": {"enum": ["s", "l"]}},
    }
    [field] = fields_of({**declared, "properties": {"name": schema}})
    assert field.read(text) == value


def test_no_document_of_the_network_is_fetched():
    with scripted() as server:
        other = f"{server.url}/schema.json"
        for foreign in ({"$schema": other}, {"properties": {"name": {"not": {"$ref": other}}}}):
            [field] = fields_of({"properties": {"name": {}}, **foreign})
            with pytest.raises(ValueError, match=other):
                field.read("x")
    assert server.requests == []


@pytest.mark.parametrize(
    ("schema", "summary"),
    [
        ({"anyOf": [{"enum": ["open", "paid"]}, {"type": "null"}]}, "open|paid|null"),
        ({"anyOf": [{"$ref": "#/$defs/Period"}, {"type": "null"}]}, "object"),
        ({"anyOf": [{"type": "number"}, {"type": "string"}]}, "number|string"),
        ({}, "json"),
    ],
)
def test_a_list_of_arguments_has_their_choices_or_types(schema, summary):
    [field] = fields_of({"properties": {"name": schema}, "$defs": {"Period": {"type": "object"}}})
    assert field.summary == summary


def test_a_choice_that_may_be_null_is_chosen_by_its_text_or_number():
    [status] = fields_of(
        {"properties": {"status": {"anyOf": [{"enum": ["open", "paid"]}, {"type": "null"}]}}}
    )
    assert [status.read(text) for text in ("paid", "1", "null", "")] == ["paid", "open", None, UNSET]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('a=1 lines=[{"code": "85 04"}, {}] b="x y"', ["a=1", 'lines=[{"code": "85 04"}, {}]', "b=x y"]),
        ('period={"note": "it\'s b={1}"} a=1', ['period={"note": "it\'s b={1}"}', "a=1"]),
        ("a={no JSON} b=[1", ["a={no", "JSON}", "b=[1"]),
        ("'a={\"b\": 1}'", ['a={"b": 1}']),
        ("note='a b={\"c\": 1}'", ['note=a b={"c": 1}']),
        ('order-id={"a": "b"} x.y=["c d"]', ['order-id={"a": "b"}', 'x.y=["c d"]']),
    ],
)
def test_json_is_one_word_and_keeps_its_quotes(text, words):
    assert split_words(text) == words
