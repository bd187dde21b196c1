"""The page's markup: texts stay texts, labels belong to inputs, and errors lead to their fields."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.protocol.http import HttpResponse
from mcp_roundtrip.question_ui.controls import escape
from mcp_roundtrip.question_ui.page import STYLE, FormPage, render_form
from mcp_roundtrip.question_ui.posted_form import (
    Answers,
    initial_values,
    make_questions,
    parse_form,
    read_answers,
)
from support.html_form import BrowserForm, Element, parse
from support.stored_tasks import form as form_request
from support.stored_tasks import url as url_request

Requests = dict[str, Any]

SIZE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "vcpus": {"type": "integer", "title": "Virtual CPUs", "minimum": 1, "maximum": 16},
        "region": {"type": "string", "enum": ["eu", "us"], "title": "Region", "description": "Where it runs"},
    },
    "required": ["vcpus", "region"],
}
ALL_KINDS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "title": "T"},
        "number": {"type": "number", "title": "T"},
        "flag": {"type": "boolean", "title": "T"},
        "few": {"type": "string", "enum": ["T", "U"], "title": "T"},
        "many": {"type": "string", "enum": [f"T{number}" for number in range(9)], "title": "T"},
        "some": {"type": "array", "items": {"type": "string", "enum": ["T", "U"]}, "title": "T"},
        "time": {"type": "string", "format": "date-time", "title": "T"},
    },
}


def one_field(schema: Any, *required: str) -> Requests:
    return {"q": form_request({"type": "object", "properties": {"x": schema}, "required": [*required]})}


def read(requests: Requests, **posted: tuple[str, ...]) -> Answers:
    return read_answers(make_questions(requests), {**posted, "action": ("accept",)})


def page(requests: Requests, posted: dict[str, tuple[str, ...]] | None = None) -> str:
    questions = make_questions(requests)
    values = initial_values(questions) if posted is None else posted
    errors = {} if posted is None else read_answers(questions, {**posted, "action": ("accept",)}).errors
    return render_form(FormPage("Databases", "provision", "tok-en", "v1", questions, values, errors))


def attributes(document: Element, name: str) -> list[str]:
    return [each.attributes[name] or "" for each in document if name in each.attributes]


@given(st.text(), st.text())
def test_a_text_is_escaped_to_ascii_that_reads_as_itself(text: str, other: str) -> None:
    escaped = escape(text)
    assert escaped.isascii()
    assert not set(escaped) & set("<>\"'\\")
    assert HttpResponse(200, escaped).body == escaped
    document = parse(f'<p title="{escaped}">{escaped}</p>{escape(other)}')
    [paragraph] = document.find("p")
    assert paragraph.text == paragraph.attributes["title"]


@given(st.text(alphabet="<>\"'&/=!-sScriptIMGonload ;()[]{}`\\\n\u202e", max_size=60))
def test_no_text_adds_an_element_or_an_attribute(text: str) -> None:
    def shape(document: Element) -> list[tuple[str, tuple[str, ...]]]:
        return [(each.tag, tuple(each.attributes)) for each in document]

    def shown(text: str) -> Element:
        properties = {
            name: {**schema, "title": text, "description": text}
            for name, schema in ALL_KINDS["properties"].items()
        }
        for name, options in (("few", 2), ("many", 9)):
            properties[name] = {**properties[name], "enum": [f"{text}{number}" for number in range(options)]}
        requests = {
            text: form_request({"type": "object", "properties": properties}, text),
            "url": url_request(f"app://{text}", text),
        }
        questions = make_questions(requests)
        errors = {each.name: text for question in questions for each in question.fields}
        values = {"0.0": (text,), "0.1": (text,), "0.6": (text, text)}
        return parse(render_form(FormPage(text, text, text, text, questions, values, errors, problem=text)))

    assert shape(shown(text or "x")) == shape(shown("plain"))


def test_the_page_has_no_script_no_inline_style_and_nothing_of_another_origin() -> None:
    html = page({"a": form_request(ALL_KINDS), "b": url_request("https://bank.example/x")})
    document = parse(html)
    tags = {each.tag for each in document}
    assert not tags & {"script", "img", "iframe", "object", "link", "base", "svg", "audio", "video"}
    for each in document:
        assert not [
            name for name in each.attributes if name.startswith("on") or name in ("style", "src", "action")
        ] or (each.tag == "form" and each.attributes["action"] == "?")
    assert [each.text for each in document.find("style")] == [STYLE]
    assert html.isascii()


def test_every_input_has_a_label_and_ids_are_unique() -> None:
    requests = {"a": form_request(ALL_KINDS), "b": form_request(SIZE), "c": url_request("https://a.example")}
    form = BrowserForm(page(requests, {"0.1": ("x",), "1.0": ("x",)}))
    ids = attributes(form.document, "id")
    assert len(ids) == len(set(ids))
    for each in form.controls:
        if each.attributes.get("type") == "hidden":
            continue
        assert each.parent is not None
        labelled = (
            each.parent.tag == "label"
            or each.attributes.get("aria-label")
            or form.document.find("label", **{"for": each.attributes["id"] or ""})
        )
        assert labelled, each
    described = attributes(form.document, "aria-describedby")
    assert {name for names in described for name in names.split()} <= set(ids)


def test_errors_are_listed_first_and_lead_to_their_fields_which_keep_what_was_typed() -> None:
    html = page({"a": form_request(SIZE)}, {"0.0": ("17 <b>",)})
    form = BrowserForm(html)
    [summary] = form.document.find("div", role="alert")
    assert "autofocus" in summary.attributes
    links = {each.attributes["href"]: each.text for each in summary.find("a")}
    labels = {target: text.partition(": ")[0] for target, text in links.items()}
    assert labels == {"#f0-0": "Virtual CPUs", "#f0-1": "Region"}
    assert {(target or "").removeprefix("#") for target in links} <= set(attributes(form.document, "id"))
    [vcpus] = form.named("0.0")
    assert (vcpus.attributes["value"], vcpus.attributes["aria-invalid"]) == ("17 <b>", "true")
    error = next(each for each in form.document if each.attributes.get("id") == "f0-0-e")
    assert error.text == links["#f0-0"].replace("Virtual CPUs", "Error")
    assert "f0-0-e" in (vcpus.attributes["aria-describedby"] or "").split()
    [title] = form.document.find("title")
    assert title.text.startswith("Error: ")


URI, DATE, MOMENT = ({"type": "string", "format": kind} for kind in ("uri", "date", "date-time"))


@pytest.mark.parametrize(
    ("schema", "typed", "error"),
    [
        ({"type": "integer"}, "1.5", "whole number"),
        ({"type": "integer"}, "1_000", "whole number"),
        ({"type": "integer"}, "9" * 5_000, "whole number"),
        ({"type": "integer", "minimum": 3.0}, "2", r"whole number: .* 3\.$"),
        ({"type": "number", "maximum": 0.5}, "0.75", "at most 0.5"),
        ({"type": "number"}, "1e999", "such as 1.5"),
        ({"type": "number"}, "NaN", "such as 1.5"),
        ({"type": "number"}, "1,5", "such as 1.5"),
        ({"type": "string", "minLength": 3}, "ab", "least 3 .* 2"),
        ({"type": "string", "maxLength": 2}, "👩‍👩‍👧", "most 2 .* 5"),
        ({"type": "string", "format": "email"}, "name", "name@example.com"),
        (URI, "example", "https://example.com/"),
        (DATE, "2026-02-30", "2026-07-28"),
        ({"type": "string", "enum": ["a"]}, "1", "answers shown"),
        ({"type": "string", "enum": ["a"]}, "-1", "answers shown"),
        ({"type": "boolean"}, "true", "answers shown"),
        ({"type": "number"}, " ", "a number."),
    ],
)
def test_a_wrong_value_gets_an_error_that_says_what_to_enter(schema: Any, typed: str, error: str) -> None:
    errors = read(one_field(schema, "x"), **{"0.0": (typed,)}).errors
    assert list(errors) == ["0.0"]
    assert re.search(error, errors["0.0"])


@pytest.mark.parametrize(
    ("schema", "posted", "value"),
    [
        ({"type": "integer"}, ("\u0661\u0662",), 12),
        ({"type": "integer"}, (" \N{MINUS SIGN}7 ",), -7),
        ({"type": "number"}, ("3",), 3),
        ({"type": "number"}, (".5",), 0.5),
        (MOMENT, ("2026-07-28T14:30", "-09:30"), "2026-07-28T14:30:00-09:30"),
        ({"type": "string", "format": "email"}, (" a@b.example ",), "a@b.example"),
        ({"type": "string"}, (" kept ",), " kept "),
        ({"type": "string", "default": "removed"}, ("",), ""),
    ],
)
def test_a_value_is_read_as_users_write_it(schema: Any, posted: tuple[str, ...], value: Any) -> None:
    assert read(one_field(schema), **{"0.0": posted}).responses["q"]["content"] == {"x": value}


@pytest.mark.parametrize("posted", [("a", "b"), ("0", "0")])
@pytest.mark.parametrize("kind", ["text", "number", "flag", "few", "some"])
def test_a_field_that_is_posted_twice_is_an_error(kind: str, posted: tuple[str, str]) -> None:
    assert read(one_field(ALL_KINDS["properties"][kind]), **{"0.0": posted}).errors.keys() == {"0.0"}


def test_the_title_is_the_label_of_a_field_or_else_its_name_in_words() -> None:
    fields: dict[str, tuple[dict[str, str], str]] = {
        "size_gb": ({"title": "Size"}, "Size"),
        "Size_gb": ({}, "Size Gb"),
        "backupPlan": ({}, "Backup Plan"),
        "URL": ({}, "URL"),
        "__": ({}, "__"),
        "a name, as it is": ({}, "a name, as it is"),
    }
    properties = {name: {"type": "string", **schema} for name, (schema, _) in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    form = BrowserForm(page({"q": form_request(schema)}))
    assert [form.label(f"0.{index}") for index in range(len(fields))] == [
        label for _, label in fields.values()
    ]


def test_several_questions_are_answered_and_declined_one_by_one() -> None:
    requests = {
        "login": url_request("https://id.example/"),
        "size": form_request(SIZE),
        "again": form_request(SIZE),
    }
    form = BrowserForm(page(requests))
    form.choose("0.action", ["accept"])
    form.enter("1.0", "4")
    form.choose("1.1", ["0"])
    form.choose("2.action", ["decline"])
    answers = read_answers(make_questions(requests), parse_form(form.body()))
    assert answers.responses == {
        "login": {"action": "accept"},
        "size": {"action": "accept", "content": {"vcpus": 4, "region": "eu"}},
        "again": {"action": "decline"},
    }
    declined: dict[str, tuple[str, ...]] = dict.fromkeys(("1.action", "2.action"), ("decline",))
    assert list(read(requests, **declined).errors) == ["0.action"]
    assert "#f0-action" in attributes(parse(page(requests, declined)), "href")


CANVAS = {"light": "#ffffff", "dark": "#121212"}
"""The color of an empty page in Chromium, by color scheme."""


def luminance(color: str) -> float:
    digits = color[1:] if len(color) == 7 else re.sub("[0-9a-f]", r"\g<0>\g<0>", color[1:])
    channels = [value / 255 for value in bytes.fromhex(digits)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize(("scheme", "text"), [("light", "#000000"), ("dark", "#ffffff")])
def test_texts_and_borders_have_contrast(scheme: str, text: str) -> None:
    light, dark = re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
    of = dict(re.findall(r"--([\w-]+): (#[0-9a-f]+)", dark if scheme == "dark" else light))
    assert of.keys() == {"line", "soft", "muted", "bad", "accent", "on-accent"}
    canvas = CANVAS[scheme]
    for name, background in (
        *(("muted", canvas), ("bad", canvas), ("accent", canvas), ("on-accent", of["accent"])),
        ("muted", of["soft"]),
    ):
        assert contrast(of[name], background) >= 4.5, name
    assert contrast(of["line"], canvas) >= 3
    assert contrast(text, of["soft"]) >= 7
