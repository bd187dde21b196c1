from typing import Any

import pytest

from mcp_roundtrip import Root
from mcp_roundtrip_testing import Player, load_module
from mcp_roundtrip_tools.run.http.messages import Response
from support.example_services import stand_in
from support.project import FUNCTIONS

APP = FUNCTIONS / "summarize/app.py"
RFC = "https://www.rfc-editor.org/rfc/rfc9110.txt"
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


METHODS = {"summary": "sampling/createMessage", "roots": "roots/list"}


@pytest.mark.parametrize(
    ("capabilities", "answers", "expected"),
    [
        (("sampling", "roots"), {"summary": SAMPLED, "roots": ROOTS}, ("a-model", "engine")),
        (("sampling",), {"summary": SAMPLED}, ("a-model", None)),
        (("roots",), {"roots": ROOTS}, ("sumbasic", "engine")),
    ],
)
def test_a_client_is_asked_in_one_round_for_what_it_can_answer(capabilities, answers, expected):
    asked = play(**{name: {} for name in capabilities}).call("summarize", DOCUMENT)
    methods = {key: request["method"] for key, request in asked.asked.items()}
    assert methods == {key: METHODS[key] for key in answers}
    summary = asked.answer(**answers).structured
    assert (summary["model"], summary["project"]) == expected
    if "summary" in answers:
        assert TEXT in asked.asked["summary"]["params"]["messages"][0]["content"]["text"]
        assert summary["summary"] == "Cats dream."


def test_a_client_without_sampling_and_roots_gets_an_extract_without_project():
    summary = play().call("summarize", DOCUMENT).structured
    assert (summary["model"], summary["project"]) == ("sumbasic", None)
    assert "cats" in summary["summary"].casefold()
    assert len(summary["summary"]) < len(TEXT)


@pytest.fixture
def rfc_editor():
    with stand_in("rfc_editor", "RFC_EDITOR_URL") as site:
        yield site


def test_an_rfc_is_fetched_once_for_all_rounds(rfc_editor):
    asked = play(sampling={}, roots={}).call("summarize", {"uri": RFC})
    assert "stateless protocol" in asked.asked["summary"]["params"]["messages"][0]["content"]["text"]
    assert asked.answer(summary=SAMPLED, roots=ROOTS).structured["summary"] == "Cats dream."
    assert rfc_editor.paths == ["/rfc/rfc9110.txt"]


def test_a_client_without_sampling_gets_an_extract_of_the_rfc_or_of_its_text(rfc_editor):
    given = play().call("summarize", {"text": TEXT, "uri": RFC})
    assert not given.failed
    assert "HTTP" not in given.text
    assert rfc_editor.paths == []
    assert "HTTP" in play().call("summarize", {"uri": RFC.removesuffix(".txt")}).structured["summary"]


@pytest.mark.parametrize(
    "uri",
    [
        "http://www.rfc-editor.org/rfc/rfc9110.txt", "https://169.254.169.254/latest/meta-data/",
        "https://www.rfc-editor.org@169.254.169.254/rfc/rfc1.txt", "https://www.rfc-editor.org/rfc/../x",
        "https://www.rfc-editor.org/rfc/rfc9110.txt?x", "https://www.rfc-editor.org/rfc/rfc9110.txt\n",
        "https://www.rfc-editor.org.example/rfc/rfc1.txt", "file:///etc/passwd", "rfc9110",
    ],
)  # fmt: skip
def test_no_other_uri_is_fetched(rfc_editor, uri):
    failed = play(sampling={}).call("summarize", {"uri": uri})
    assert failed.failed
    assert RFC in failed.text
    assert rfc_editor.paths == []


def test_a_redirect_is_not_followed(rfc_editor):
    rfc_editor.failures = [Response(302, (("location", "/rfc/rfc9110.txt"),))] * 3
    assert Player(APP).call("summarize", {"uri": RFC}).failed
    assert set(rfc_editor.paths) == {"/rfc/rfc9110.txt"}
    assert len(rfc_editor.paths) == 3, "three attempts, and no request for the location"


def test_an_unknown_rfc_is_named(rfc_editor):
    failed = play().call("summarize", {"uri": "https://www.rfc-editor.org/rfc/rfc99999.txt"})
    assert "rfc99999" in failed.text
    assert len(rfc_editor.paths) == 1


@pytest.mark.parametrize("status", [429, 503])
def test_a_short_outage_of_the_site_is_bridged(rfc_editor, status):
    rfc_editor.failures = [Response(status), Response(status)]
    assert not Player(APP, capabilities={}).call("summarize", {"uri": RFC}).failed
    assert len(rfc_editor.paths) == 3


def test_only_the_beginning_of_a_long_rfc_is_read(rfc_editor):
    rfc_editor.failures = [Response(200, (), "Many words. é".encode() * 50_000)]
    asked = play(sampling={}).call("summarize", {"uri": RFC})
    prompt = asked.asked["summary"]["params"]["messages"][0]["content"]["text"]
    assert 19_000 < len(prompt.encode()) < 20_200


@pytest.mark.parametrize("text", ["", " \n "])
def test_an_empty_text_is_a_tool_error(text):
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
def test_the_project_is_the_innermost_root_that_holds_the_document(uri, expected):
    roots = tuple(Root(**root) for root in ROOTS["roots"])
    assert MODULE.project(uri, roots) == expected
    assert MODULE.project(uri, roots[::-1]) == expected


def test_an_extract_takes_what_the_text_is_mostly_about_once_and_needs_no_words():
    assert not {"Paint", "weather"} & set(EXTRACT.sumbasic(TEXT, 2).split())
    repeated = "Whales sing songs. Whales sing songs. Divers hear songs."
    assert EXTRACT.sumbasic(repeated, 2) == "Whales sing songs. Divers hear songs."
    assert EXTRACT.sumbasic(" 1 2. 3! ", 2) == "1 2. 3!"
