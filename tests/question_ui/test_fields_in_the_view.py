"""The fields of the question app in a browser: what they give, what they refuse, and how they look."""

import re
from pathlib import Path
from typing import Any

import pytest

from support.question_app import (
    ANSWERED,
    ASKED,
    DONE,
    GOES_ON,
    KEEP,
    SEND,
    SIZE,
    Show,
    answers_of,
    asking,
    complete,
    form,
)
from support.stored_tasks import url as url_question

pytest_plugins = ["support.question_app"]

IMAGES = Path(__file__).parents[2] / "docs/images"

ERRORS = "[...document.querySelectorAll('.error')].map((each) => each.textContent).filter(Boolean)"

REGION = {"oneOf": [{"const": "eu-1", "title": "Europe"}, {"const": "us-1", "title": "America"}]}
TAGS = {"anyOf": [{"const": name[0].lower(), "title": name} for name in ("Test", "Staging", "Production")]}

EVERYTHING = form(
    "Please describe the database.",
    {
        "name": {"type": "string", "title": "Name", "minLength": 2, "maxLength": 20, "default": "orders"},
        "notes": {"type": "string", "title": "Notes", "maxLength": 500},
        "contact": {"type": "string", "format": "email", "title": "Contact"},
        "day": {"type": "string", "format": "date", "title": "Day"},
        "at": {"type": "string", "format": "date-time", "title": "Moment"},
        "ratio": {"type": "number", "title": "Ratio", "maximum": 2},
        "region": {"type": "string", "title": "Region", **REGION},
        "plan": {"type": "string", "title": "Plan", "enum": list("abcdefgh"), "default": "b"},
        "tags": {"type": "array", "title": "Tags", "minItems": 1, "maxItems": 2, "items": TAGS},
        "backup": {"type": "boolean", "title": "Backups", "default": True},
    },
    required=["name", "region", "tags"],
)


def test_every_kind_of_field_gives_the_value_that_its_schema_asks_for(show: Show) -> None:
    log = show(
        ("result", asking({"all": EVERYTHING})),
        ("fill", "Notes", "two\nlines"),
        ("fill", "Contact", "mia@müller.example"),
        ("fill", "Day", "2026-12-24"),
        ("fill", "Moment", "2026-12-24T18:00"),
        ("fill", "Ratio", "1.5"),
        ("check", "America"),
        ("check", "Test"),
        ("check", "Production"),
        *(SEND, GOES_ON),
        answers=DONE,
    )
    assert answers_of(log["calls"][0])["all"] == {
        "name": "orders",
        "notes": "two\nlines",
        "contact": "mia@müller.example",
        "day": "2026-12-24",
        "at": "2026-12-24T17:00:00.000Z",
        "ratio": 1.5,
        "region": "us-1",
        "plan": "b",
        "tags": ["t", "p"],
        "backup": True,
    }


def test_fields_that_were_left_empty_are_left_out_and_required_ones_are_asked_for(show: Show) -> None:
    log = show(
        ("result", asking({"all": EVERYTHING})),
        ("fill", "Name", ""),
        ("select", "Plan", "No answer"),
        ("fill", "Ratio", "much"),
        ("check", "No answer"),
        SEND,
        ("see", "Some answers are missing or not possible."),
        ("evaluate", "document.activeElement === document.querySelector('[aria-invalid=true]')"),
        ("evaluate", ERRORS),
        ("fill", "Name", "o"),
        ("fill", "Ratio", "3"),
        ("check", "Europe"),
        *[("check", name) for name in ("Test", "Staging", "Production")],
        SEND,
        ("evaluate", ERRORS),
        ("fill", "Name", "or"),
        ("fill", "Ratio", ""),
        ("evaluate", "document.querySelectorAll('[type=checkbox]')[0].click()"),
        *(SEND, GOES_ON),
        answers=DONE,
    )
    focuses_first, first, second, _ = log["values"]
    assert focuses_first
    assert re.match(r"Enter .* value\. Enter .* 1\.5\. Choose .*\. Choose .*\.", " ".join(first))
    assert re.match(r"Enter .* least 2 .*\. Enter .* most 2\. Choose .* most 2\.", " ".join(second))
    assert answers_of(log["calls"][0])["all"] == {"name": "or", "region": "eu-1", "tags": ["s", "p"]}


def test_the_label_of_a_field_is_its_title_or_its_name_in_words_or_the_message(show: Show) -> None:
    fields = {"size_gb": {"type": "integer", "title": "Size"}, "price_limit": {"type": "number"}}
    log = show(
        ("result", asking({"size": form("How large?", {**fields, "backupPlan": {"type": "boolean"}})})),
        ("see", "How large?"),
        ("evaluate", "[...document.querySelectorAll('.label-name')].map((each) => each.innerText)"),
    )
    assert log["values"] == [["Size", "Price Limit", "Backup Plan"]]
    shows = ("evaluate", "document.body.innerText")
    tree, shown = show(("result", asking({"keep": KEEP})), ("see", "Keep it?"), ("tree",), shows)["values"]
    assert 'group "orders costs 40 EUR a month. Keep it?"' in tree
    assert shown.count("Keep it?") == 1


def test_a_number_that_does_not_fit_its_field_gets_an_error_of_its_type(show: Show) -> None:
    typed = {"integer": ["1.5", "9" * 20, "9" * 400], "number": ["1e400", "1,5"]}
    kinds = {
        f"{kind}_{index}": (kind, text) for kind, texts in typed.items() for index, text in enumerate(texts)
    }
    question = form("How large?", {name: {"type": kind, "title": name} for name, (kind, _) in kinds.items()})
    log = show(
        ("result", asking({"size": question})),
        *[("fill", name, text) for name, (_, text) in kinds.items()],
        SEND,
        ("see", "Some answers are missing or not possible."),
        ("evaluate", ERRORS),
    )
    whole, *rest = log["values"][0][:5]
    assert "whole number" in whole
    assert ["too large" in error for error in rest] == [True, True, True, False]
    assert "such as 1.5" in rest[-1]


HOSTILE = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


def test_hostile_texts_are_shown_as_text(show: Show) -> None:
    properties = {
        HOSTILE: {"type": "string", "title": HOSTILE, "description": HOSTILE, "default": HOSTILE},
        "one": {"type": "string", "oneOf": [{"const": HOSTILE, "title": HOSTILE}]},
        "many": {"type": "array", "title": HOSTILE, "items": {"enum": [HOSTILE]}},
        "__proto__x": {"type": "string", "enum": [HOSTILE] * 9},
    }
    log = show(
        ("result", asking({HOSTILE: form(HOSTILE, properties, required=[])}, tool=HOSTILE)),
        ("see", "<img src=x"),
        *(SEND, GOES_ON),
        ("evaluate", "[document.title, document.images.length, document.scripts.length]"),
        answers=[{"result": complete(HOSTILE)}],
    )
    assert log["values"] == [["Questions", 0, 1]]
    assert log["complaints"] == []


def test_texts_of_any_script_keep_their_direction(show: Show) -> None:
    question = form(
        "ما حجم قاعدة البيانات؟ 🐘",
        {"size": {"type": "string", "title": "الحجم", "description": "الوصف", "maxLength": 2}},
    )
    log = show(
        ("result", asking({"size": question})),
        ("evaluate", "getComputedStyle(document.querySelector('.message')).direction"),
        ("evaluate", "document.querySelector('.hint').textContent"),
        ("fill", "الحجم", "👩‍🚀"),
        SEND,
        ("see", "Enter at most 2 characters. These are 3."),
        ("fill", "الحجم", "🐘🐘"),
        *(SEND, GOES_ON),
        answers=DONE,
    )
    assert log["values"] == ["rtl", "الوصف · \u2068at most 2 characters\u2069"]
    assert answers_of(log["calls"][0]) == {"size": {"size": "🐘🐘"}}


def test_200_fields_and_1000_choices_are_shown(show: Show) -> None:
    many = [f"option {number}" for number in range(1_000)]
    fields: dict[str, Any] = {f"field_{number}": {"type": "string"} for number in range(200)}
    fields |= {"one": {"type": "string", "enum": many}, "some": {"type": "array", "items": {"enum": many}}}
    log = show(
        ("result", asking({"all": form("Many", fields, required=["one", "some"])})),
        ("select", "One", "option 999"),
        ("fill", "Show choices that contain", "998"),
        ("check", "option 998"),
        ("fill", "Field 199", "last"),
        *(SEND, GOES_ON),
        answers=DONE,
    )
    content = answers_of(log["calls"][0])["all"]
    assert content == {"field_199": "last", "one": "option 999", "some": ["option 998"]}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_violation_of_accessibility(show: Show, theme: str) -> None:
    url = url_question("https://bank.example/sign")
    log = show(
        ("result", asking({"all": EVERYTHING, "keep": KEEP, "sign": url})),
        ("fill", "Name", ""),
        ("axe",),
        SEND,
        ("see", "Some answers are missing or not possible."),
        ("axe",),
        theme=theme,
    )
    assert log["values"] == [[], []]
    log = show(
        *(ASKED, *ANSWERED),
        ("see", "orders runs at db-1"),
        ("axe",),
        answers=DONE,
        refused=["message"],
        theme=theme,
    )
    assert log["values"] == [[]]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_pictures_of_the_documentation_show_the_view(show: Show, theme: str, tmp_path: Path) -> None:
    fields = {
        "vcpus": SIZE["params"]["requestedSchema"]["properties"]["vcpus"] | {"default": 4},
        "region": EVERYTHING["params"]["requestedSchema"]["properties"]["region"],
        "contact": {"type": "string", "format": "email", "title": "Contact", "description": "For alarms"},
    }
    question = form("How large should orders be?", fields, required=["vcpus", "region"])
    picture = tmp_path / f"question-app-{theme}.png"
    show(("result", asking({"size": question})), ("check", "Europe"), ("fitted", str(picture)), theme=theme)
    assert picture.stat().st_size < 60_000
    assert (IMAGES / picture.name).stat().st_size < 60_000
