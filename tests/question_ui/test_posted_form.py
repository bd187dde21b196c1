"""Any valid schema and any valid answer go through the rendered page and a browser's form, and come back."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_roundtrip.question_ui.page import FormPage, render_form
from mcp_roundtrip.question_ui.posted_form import (
    MAX_FORM_VALUES,
    MalformedForm,
    initial_values,
    make_questions,
    parse_form,
    questions_version,
    read_answers,
)
from support.html_form import BrowserForm
from support.stored_tasks import form as request

HOSTILE = [
    "</title><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</textarea><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "javascript:alert(1)",
    "&lt;b&gt; &amp; &#x3c;script&#x3e;",
    "<!-- -->",
    "\\ud800 \\u003cscript\\u003e",
    "' onfocus=alert(1) autofocus='",
    "مرحبا بالعالم",
    "שלום",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "\u202eevil\u202c",
    "{{7*7}} ${7*7} %s %(x)s",
]

characters = st.characters(exclude_categories=["Cs", "Cc", "Cn"])
line = st.one_of(st.sampled_from(HOSTILE), st.text(characters, max_size=20))
filled_line = line.filter(bool)
lines = st.lists(filled_line, min_size=1, max_size=3).map("\n".join)

AT_AN_OLD_OFFSET = {"type": "string", "format": "date-time", "default": "1930-01-01T00:00:00+00:20"}

Case = tuple[dict[str, Any], Any]
"""A property and a valid value of it."""


def described(draw: st.DrawFn, schema: dict[str, Any]) -> dict[str, Any]:
    title, description = draw(st.none() | filled_line), draw(st.none() | filled_line)
    labels = {"title": title, "description": description}
    return schema | {name: text for name, text in labels.items() if text is not None}


def with_default(draw: st.DrawFn, schema: dict[str, Any], values: st.SearchStrategy[Any]) -> dict[str, Any]:
    return schema | ({"default": draw(values)} if draw(st.booleans()) else {})


@st.composite
def texts(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from([None, "email", "uri", "date", "date-time"]))
    values: dict[str | None, st.SearchStrategy[str]] = {
        None: lines,
        "email": st.sampled_from(["a@example.com", "ä+b@xn--mnchen-3ya.de"]),
        "uri": st.sampled_from(["https://example.com/?a=1&b=%20#c", "urn:isbn:0451450523"]),
        "date": st.dates().map(str),
        "date-time": st.datetimes().map(lambda at: f"{at.replace(microsecond=0).isoformat()}+05:30"),
    }
    value = draw(values[kind])
    schema: dict[str, Any] = {"type": "string"}
    if kind is not None:
        schema["format"] = kind
    elif draw(st.booleans()):
        schema |= {"minLength": draw(st.integers(0, len(value))), "maxLength": len(value) + 120}
    else:
        schema |= {"maxLength": len(value) + draw(st.integers(0, 50))}
        value = value.replace("\n", " ")
    return with_default(draw, schema, values[kind] if kind else st.just(value)), value


@st.composite
def numbers(draw: st.DrawFn) -> Case:
    kind = draw(st.sampled_from(["integer", "number"]))
    many = st.integers(-(10**30), 10**30)
    values = many if kind == "integer" else many | st.floats(allow_nan=False, allow_infinity=False)
    low, value, high = sorted(draw(st.tuples(values, values, values)))
    bounds = {name: bound for name, bound in (("minimum", low), ("maximum", high)) if draw(st.booleans())}
    return with_default(draw, {"type": kind, **bounds}, st.just(value)), value


@st.composite
def choices(draw: st.DrawFn) -> Case:
    options = draw(st.lists(line, min_size=1, max_size=12, unique=True))
    titles = draw(st.none() | st.lists(filled_line, min_size=len(options), max_size=len(options)))
    titled = [
        {"const": option, "title": title} for option, title in zip(options, titles or options, strict=True)
    ]
    if draw(st.booleans()):
        items = {"type": "string", "enum": options} if titles is None else {"anyOf": titled}
        chosen = sorted(draw(st.lists(st.sampled_from(options), unique=True)), key=options.index)
        bounds = {"minItems": draw(st.integers(0, len(chosen))), "maxItems": len(chosen) or 1}
        return with_default(draw, {"type": "array", "items": items, **bounds}, st.just(chosen)), chosen
    single = {"enum": options} if titles is None else {"oneOf": titled}
    value = draw(st.sampled_from(options))
    return with_default(draw, {"type": "string", **single}, st.just(value)), value


@st.composite
def properties(draw: st.DrawFn) -> Case:
    booleans = st.booleans().map(lambda value: ({"type": "boolean"}, value))
    schema, value = draw(st.one_of(texts(), numbers(), choices(), booleans))
    return described(draw, schema), value


@st.composite
def forms(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """A requestedSchema and a valid answer; a property that is not required may be missing."""
    cases = draw(st.dictionaries(filled_line, properties(), min_size=1, max_size=5))
    required = [name for name in cases if draw(st.booleans())]
    schema = {"type": "object", "properties": {name: each for name, (each, _) in cases.items()}}
    answer = {name: value for name, (_, value) in cases.items()}
    return schema | ({"required": required} if required else {}), answer


def rendered(requests: Mapping[str, Any], server: str = "server", tool: str = "tool") -> BrowserForm:
    questions = make_questions(requests)
    return BrowserForm(
        render_form(FormPage(server, tool, "token", "v1", questions, initial_values(questions)))
    )


def option_values(schema: Mapping[str, Any]) -> list[Any]:
    if schema["type"] == "boolean":
        return [True, False]
    schema = schema.get("items", schema)
    titled = schema.get("oneOf") or schema.get("anyOf") or []
    return schema.get("enum") or [option["const"] for option in titled]


def fill_in(form: BrowserForm, name: str, schema: Mapping[str, Any], value: Any) -> None:
    """Enter a value as a user would, who sees only titles and positions."""
    options = option_values(schema)
    if schema["type"] == "array":
        form.choose(name, [str(options.index(each)) for each in value])
    elif options:
        form.choose(name, [str(options.index(value))])
    elif schema.get("format") == "date-time":
        form.enter(name, value[:-6], value[-6:])
    else:
        form.enter(name, value if isinstance(value, str) else repr(value))


@given(forms(), filled_line, filled_line)
def test_a_valid_answer_arrives_as_it_was_entered(
    case: tuple[dict[str, Any], dict[str, Any]], message: str, tool: str
) -> None:
    schema, answer = case
    jsonschema.validate(answer, schema)
    requests = {"wire#1": request(schema, message)}
    form = rendered(requests, tool=tool)
    for position, (key, member) in enumerate(schema["properties"].items()):
        fill_in(form, f"0.{position}", member, answer[key])
        single = message if schema["properties"].keys() == {"value"} else None
        shown = form.label(f"0.{position}").removesuffix(" (optional)")
        if title := member.get("title") or single:
            assert shown == title
        else:  # the name, in words
            assert (
                shown.replace(" ", "").lower() == key.replace("_", "").replace(" ", "").lower()
                or shown == key
            )
    answers = read_answers(make_questions(requests), parse_form(form.body()))
    assert answers.errors == {}
    [(wire_key, response)] = answers.responses.items()
    assert (wire_key, response["action"]) == ("wire#1", "accept")
    missing = answer.keys() - response["content"].keys()
    assert all(answer[key] == [] and key not in schema.get("required", ()) for key in missing)
    assert response["content"] == {key: value for key, value in answer.items() if key not in missing}


@example(({"type": "object", "properties": {"a": {"type": "string", "maxLength": 9, "default": "a\nb"}}}, {}))
@example(({"type": "object", "properties": {"a": AT_AN_OLD_OFFSET}}, {}))
@given(forms())
def test_a_form_that_is_sent_unchanged_answers_with_its_defaults(
    case: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    schema, _ = case
    requests = {"q": request(schema, "Message")}
    answers = read_answers(make_questions(requests), parse_form(rendered(requests).body()))
    if not answers.errors:
        content = answers.responses["q"]["content"]
        jsonschema.validate(content, schema)
        defaults = {k: m["default"] for k, m in schema["properties"].items() if "default" in m}
        assert content == defaults | {k: [] for k in content.keys() - defaults.keys()}
    required_without_default = {
        f"0.{position}"
        for position, (key, member) in enumerate(schema["properties"].items())
        if key in schema.get("required", ()) and "default" not in member
        if member["type"] != "array" or member["minItems"] > 0
    }
    assert answers.errors.keys() == required_without_default


@given(
    st.text(max_size=300),
    st.dictionaries(st.sampled_from(["0.0", "0.1", "0.2"]), st.lists(st.text(), max_size=3)),
)
def test_any_post_is_an_answer_that_fits_the_schema_or_errors(
    text: str, posted: dict[str, list[str]]
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "maxLength": 5},
            "count": {"type": "integer", "minimum": 1, "maximum": 9},
            "colors": {"type": "array", "items": {"type": "string", "enum": ["r", "g"]}, "minItems": 1},
        },
        "required": ["name", "colors"],
    }
    questions = make_questions({"q": request(schema, text)})
    given_values = {name: tuple(values) for name, values in posted.items()}
    answers = read_answers(questions, {**given_values, "action": ("accept",)})
    page = FormPage("s", "t", "token", "v1", questions, given_values, answers.errors)
    BrowserForm(render_form(page))
    assert bool(answers.errors) != bool(answers.responses)
    if answers.responses:
        jsonschema.validate(answers.responses["q"]["content"], schema)


def test_forms_that_differ_in_anything_shown_have_different_versions() -> None:
    size = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 8}}}
    larger = {"type": "object", "properties": {"size": {"type": "integer", "maximum": 16}}}
    one, two = request(size, "How large?"), request(size, "How small?")
    forms = [{"q": one}, {"p": one}, {"q": two}, {"q": request(larger, "How large?")}]
    pairs = [{"q": one, "p": two}, {"p": two, "q": one}, {"q": two, "p": one}]
    assert len({questions_version(each) for each in (*forms, *pairs)}) == 7


OPTIONS = {"type": "array", "items": {"type": "string", "enum": ["r", "g", "b", "w"]}}


@pytest.mark.parametrize(
    ("member", "accepted", "refused"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 9}, [["1"], ["9"]], [["0"], ["10"], ["1", "9"]]),
        ({"type": "number", "minimum": 1, "maximum": 9}, [["1.0"], ["9.0"]], [["0.9"], ["9.1"]]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, [["ab"], ["abc"]], [["a"], ["abcd"]]),
        ({"type": "string", "minLength": 1, "default": "a"}, [[""], ["b"]], []),
        (
            OPTIONS | {"minItems": 2, "maxItems": 3},
            [["0", "1"], ["0", "1", "2"]],
            [["0"], ["0", "1", "2", "3"]],
        ),
    ],
    ids=lambda case: case["type"] if isinstance(case, dict) else "",
)
def test_a_limit_is_accepted_and_what_lies_beyond_is_refused(
    member: dict[str, Any], accepted: list[list[str]], refused: list[list[str]]
) -> None:
    schema = {"type": "object", "properties": {"value": member}}
    questions = make_questions({"q": request(schema, "Message")})
    for values in (*accepted, *refused):
        answers = read_answers(questions, {"action": ("accept",), "0.0": tuple(values)})
        assert answers.errors.keys() == (set() if values in accepted else {"0.0"}), values
        jsonschema.validate([each["content"] for each in answers.responses.values()], {"items": schema})


posted_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"))


@given(st.lists(st.tuples(posted_texts, posted_texts)))
def test_the_body_of_a_browser_is_read_as_it_was_entered(pairs: list[tuple[str, str]]) -> None:
    expected: dict[str, list[str]] = {}
    for name, value in pairs:
        expected.setdefault(name, []).append(value)
    body = urlencode([(name.replace("\n", "\r\n"), value.replace("\n", "\r\n")) for name, value in pairs])
    for each in (body, body.encode()):
        assert parse_form(each) == {name: tuple(values) for name, values in expected.items()}


@pytest.mark.parametrize(
    "body", ["a=%", "a=%zz", "%f=1", "a=%ff", "a=%c3%28", "a=%ed%a0%80", b"a=\xff", "a=\ud800"]
)
def test_a_body_that_no_browser_sends_is_refused(body: str | bytes) -> None:
    with pytest.raises(MalformedForm):
        parse_form(body)


def test_the_number_of_values_is_bounded() -> None:
    assert len(parse_form("&".join(["a=1"] * MAX_FORM_VALUES))["a"]) == MAX_FORM_VALUES
    with pytest.raises(MalformedForm):
        parse_form("&" * MAX_FORM_VALUES)
