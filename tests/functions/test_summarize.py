from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Root
from mcp_roundtrip_testing import Player, load_module
from support.project import FUNCTIONS

APP = FUNCTIONS / "summarize/app.py"
MODULE = load_module(APP)
EXTRACT = load_module(FUNCTIONS / "summarize/extract.py")
TEXT = (
    "Cats sleep most of the day. Sleeping cats dream, and dreaming cats twitch. Paint dries slowly. "
    "Most cats dream about other cats. The weather was dull."
)
DOCUMENT = {"text": TEXT, "uri": "file:///home/ada/engine/notes.md"}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": " Cats dream. "}, "model": "a-model"}
ROOTS = {"roots": [{"uri": "file:///home/ada", "name": "home"}, {"uri": "file:///home/ada/engine/"}]}


def play(**capabilities: Any) -> Player:
    return Player(APP, capabilities=capabilities, always_replay=True)


def test_sampling_and_roots_are_asked_in_one_round() -> None:
    asked = play(sampling={}, roots={}).call("summarize", DOCUMENT)
    assert {key: request["method"] for key, request in asked.asked.items()} == {
        "summary": "sampling/createMessage",
        "roots": "roots/list",
    }
    assert TEXT in asked.asked["summary"]["params"]["messages"][0]["content"]["text"]
    assert asked.answer(summary=SAMPLED, roots=ROOTS).structured == {
        "summary": "Cats dream.",
        "model": "a-model",
        "project": "engine",
    }


def test_answers_may_come_one_by_one() -> None:
    asked = play(sampling={}, roots={}).call("summarize", DOCUMENT)
    second = asked.answer(roots=ROOTS)
    assert second.asked.keys() == {"summary"}
    assert second.answer(summary=SAMPLED).structured["project"] == "engine"


def test_a_client_with_neither_gets_an_extract_and_no_project() -> None:
    summary = play().call("summarize", DOCUMENT).structured
    assert (summary["model"], summary["project"]) == ("sumbasic", None)
    assert "cats" in summary["summary"].casefold()
    assert len(summary["summary"]) < len(TEXT)


def test_a_client_without_sampling_is_asked_only_for_its_roots() -> None:
    asked = play(roots={}).call("summarize", DOCUMENT)
    assert asked.asked.keys() == {"roots"}
    summary = asked.answer(roots=ROOTS).structured
    assert (summary["model"], summary["project"]) == ("sumbasic", "engine")


def test_a_client_without_roots_is_asked_only_for_a_summary() -> None:
    asked = play(sampling={}).call("summarize", DOCUMENT)
    assert asked.asked.keys() == {"summary"}
    assert asked.answer(summary=SAMPLED).structured["project"] is None


@pytest.mark.parametrize("wrong", [{}, {"role": "assistant"}, {**SAMPLED, "content": "text"}])
def test_an_answer_that_is_no_sampling_result_is_asked_again(wrong: Any) -> None:
    asked = play(sampling={}, roots={}).call("summarize", DOCUMENT)
    assert asked.answer(summary=wrong, roots=ROOTS).asked.keys() == {"summary"}


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_text_is_a_tool_error(text: str) -> None:
    assert play(sampling={}).call("summarize", {"text": text}).failed


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("file:///home/ada/engine/notes.md", "engine"),
        ("file:///home/ada/engine", "engine"),
        ("file:///home/ada/engineering/notes.md", "home"),
        ("file:///home/grace/notes.md", None),
        ("", None),
    ],
)
def test_the_project_is_the_innermost_root_that_holds_the_document(uri: str, expected: str | None) -> None:
    roots = tuple(Root(**root) for root in ROOTS["roots"])
    assert MODULE.project(uri, roots) == expected
    assert MODULE.project(uri, roots[::-1]) == expected


def test_an_extract_takes_what_the_text_is_mostly_about() -> None:
    extract = EXTRACT.sumbasic(TEXT, 2)
    assert "Paint" not in extract
    assert "weather" not in extract


def test_an_extract_does_not_repeat_itself() -> None:
    extract = EXTRACT.sumbasic("Whales sing songs. Whales sing songs. Divers hear songs.", 2)
    assert extract == "Whales sing songs. Divers hear songs."


def test_a_text_without_words_is_its_own_extract() -> None:
    assert EXTRACT.sumbasic(" 1 2. 3! ", 3) == "1 2. 3!"


@given(st.text(), st.integers(1, 5))
def test_an_extract_is_made_of_the_texts_sentences_in_their_order(text: str, limit: int) -> None:
    extract = EXTRACT.sumbasic(text, limit)
    position = 0
    for part in extract.split():
        position = text.index(part, position) + len(part)


@given(st.lists(st.sampled_from(["Whales sing.", "Divers hear songs.", "Boats sail."]), min_size=1))
def test_an_extract_has_no_more_sentences_than_asked_for(sentences: list[str]) -> None:
    assert EXTRACT.sumbasic(" ".join(sentences), 2).count(".") == min(2, len(sentences))
