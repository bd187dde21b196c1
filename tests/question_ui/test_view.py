"""The view of the question app in a browser, inside a host made with the official app-bridge."""

from pathlib import Path
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.protocol.constants import UI_MIME_TYPE
from mcp_roundtrip_testing import Player
from support.client_requests import APPS
from support.deployment import Deployment
from support.documents import code_blocks, run_blocks
from support.question_app import META, Show, asking, complete, form
from support.stored_tasks import url as url_question

pytest_plugins = ["support.question_app"]

IMAGES = Path(__file__).parents[2] / "docs/images"

VCPUS = {"type": "integer", "title": "Virtual CPUs", "minimum": 1, "maximum": 16}
SIZE = form("How large should orders be?", {"vcpus": {**VCPUS, "description": "Each has 2 GiB of memory"}})
KEEP = form("orders costs 40 EUR a month. Keep it?", {"value": {"type": "boolean"}})
shop = Server("shop", channels=("app", "page"))


@shop.tool
def order(ctx: Context, item: str) -> str:
    """Order something."""
    return str(ctx.elicit("count", f"How many {item}?", int))


DONE = [{"result": complete("orders runs at db-1")}]

PAGE_URL = "https://mcp.test/mcp/questions"

ERRORS = "[...document.querySelectorAll('.error')].map((each) => each.textContent).filter(Boolean)"
ASKED = ("result", asking({"size": SIZE}))
ANOTHER = ("result", {"content": [{"type": "text", "text": "nothing to ask"}]})
SEND = ("click", "Send")
ANSWERED = (("fill", "Virtual CPUs", "4"), SEND)
GOES_ON = ("see", "The assistant can go on.")

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


def answers_of(call: dict[str, Any]) -> dict[str, Any]:
    return {key: answer.get("content") for key, answer in call["arguments"]["answers"].items()}


def test_an_answer_goes_to_the_answer_tool_and_the_result_to_the_model(show: Show) -> None:
    log = show(
        ("result", asking({"size": SIZE}, instruction="Call provision_database again.")),
        *(*ANSWERED, GOES_ON),
        ("evaluate", "document.querySelector('details[open] pre').innerText"),
        answers=DONE,
    )
    (call,) = log["calls"]
    assert call["name"] == "answer_questions"
    assert call["arguments"] == {
        "tool": "provision_database",
        "arguments": {"name": "orders"},
        "state": "state-1",
        "answers": {"size": {"action": "accept", "content": {"vcpus": 4}}},
    }
    (context,) = log["contexts"]
    assert [block["text"] for block in context["content"]][1:] == ["orders runs at db-1"]
    assert log["values"] == ["orders runs at db-1"], "the result is shown, and not folded away"
    (message,) = log["messages"]
    assert message["role"] == "user"
    assert message["content"][0]["text"].endswith("Call provision_database again.")
    assert log["complaints"] == []


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
    needed = "Choose an option."
    assert first[:4] == ["Enter a value.", "Enter a number, such as 1.5.", needed, needed]
    assert second[:3] == ["Enter at least 2 characters.", "Enter at most 2.", "Choose at most 2."]
    assert answers_of(log["calls"][0])["all"] == {"name": "or", "region": "eu-1", "tags": ["s", "p"]}


def test_a_refused_answer_is_shown_with_what_was_typed_and_the_reason(show: Show) -> None:
    reason = "\n\nThe previous answer was not accepted. vcpus: 3 is not a power of two"
    again = {**SIZE, "params": {**SIZE["params"], "message": SIZE["params"]["message"] + reason}}
    log = show(
        ASKED,
        ("fill", "Virtual CPUs", "3"),
        SEND,
        ("see", "3 is not a power of two"),
        ("evaluate", "document.activeElement.value"),
        ("press", "Backspace"),
        ("type", "4"),
        ("press", "Enter"),
        GOES_ON,
        answers=[{"result": asking({"size": again}, "state-2")}, *DONE],
    )
    assert log["values"] == ["3"]
    assert [call["arguments"]["state"] for call in log["calls"]] == ["state-1", "state-2"]
    assert answers_of(log["calls"][1]) == {"size": {"vcpus": 4}}


def test_a_further_question_is_shown_in_the_same_view_and_an_old_result_does_not_ask_again(
    show: Show,
) -> None:
    log = show(
        *(ASKED, *ANSWERED),
        ("see", "Keep it?"),
        ("check", "Yes"),
        *(SEND, GOES_ON, ASKED, GOES_ON),
        ("tree",),
        answers=[{"result": asking({"keep": KEEP}, "state-2")}, *DONE],
    )
    assert answers_of(log["calls"][1]) == {"keep": {"value": True}}
    assert "Virtual CPUs" not in log["values"][0]


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
    assert whole == "Enter a whole number."
    assert ["too large" in error for error in rest] == [True, True, True, False]
    assert "such as 1.5" in rest[-1]


def test_the_user_can_decline(show: Show) -> None:
    declined = {**complete("The user declined."), "isError": True}
    log = show(ASKED, ("click", "Decline"), GOES_ON, answers=[{"result": declined}])
    assert log["calls"][0]["arguments"]["answers"] == {"size": {"action": "decline"}}
    (message,) = log["messages"]
    assert "declined" in message["content"][0]["text"], "the user has answered nothing"
    assert "declined" in log["contexts"][0]["content"][0]["text"]


def test_several_questions_are_answered_or_declined_one_by_one(show: Show) -> None:
    log = show(
        ("result", asking({"size": SIZE, "keep": KEEP})),
        ("evaluate", "document.querySelectorAll('section')[1].querySelector('[type=checkbox]').click()"),
        ("fill", "Virtual CPUs", "2"),
        *(SEND, GOES_ON),
        answers=DONE,
    )
    assert log["calls"][0]["arguments"]["answers"] == {
        "size": {"action": "accept", "content": {"vcpus": 2}},
        "keep": {"action": "decline"},
    }


def test_a_keyboard_is_enough(show: Show) -> None:
    log = show(
        ("result", asking({"size": SIZE, "keep": KEEP})),
        ("see", "Keep it?"),
        ("evaluate", "window.focus()"),
        ("press", "Tab"),
        ("type", "8"),
        ("press", "Tab", 2),
        ("press", "ArrowDown"),
        ("press", "Tab", 2),
        ("evaluate", "document.activeElement.textContent"),
        ("press", "Enter"),
        GOES_ON,
        ("evaluate", "document.activeElement.tagName"),
        answers=DONE,
    )
    assert log["values"][1:] == ["Send", "H1"]
    assert answers_of(log["calls"][0]) == {"size": {"vcpus": 8}, "keep": {"value": False}}


def test_a_url_is_shown_before_the_host_opens_it_and_counts_as_accepted_only_then(show: Show) -> None:
    question = url_question("https://bank.example/sign?x=1")
    log = show(
        ("result", asking({"sign": question, "keep": KEEP})),
        ("see", "https://bank.example/sign?x=1"),
        ("check", "Yes"),
        SEND,
        ("see", "Open the link first."),
        ("click", "Open link"),
        SEND,
        ("see", "This is not finished yet."),
        ("click", "Continue"),
        GOES_ON,
        answers=[{"result": asking({"sign": question}, "state-2")}, *DONE],
    )
    assert log["links"] == ["https://bank.example/sign?x=1"]
    signed = [call["arguments"]["answers"]["sign"] for call in log["calls"]]
    assert signed == [{"action": "accept"}] * 2
    log = show(
        ("result", asking({"sign": url_question("javascript://x/%0aalert(1)")})),
        ("see", "javascript://x"),
        ("tree",),
    )
    assert "Open link" not in log["values"][0]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://b\u0430nk.example/", "https://xn--bnk-6cd.example/"),
        ("https://evil.example\\@bank.example/", "https://evil.example/@bank.example/"),
        ("https://evil.example/\u202eelpmaxe.knab", "https://evil.example/%E2%80%AEelpmaxe.knab"),
        ("https://e\tvil.example/", "https://evil.example/"),
    ],
)
def test_a_url_is_shown_and_opened_in_ascii_as_a_browser_reads_it(show: Show, url: str, shown: str) -> None:
    opens = (("see", shown), ("click", "Open link"), ("click", "Continue"), GOES_ON)
    log = show(("result", asking({"sign": url_question(url)})), *opens, answers=DONE)
    assert log["links"] == [shown]


@pytest.mark.parametrize("refused", ["context", "message"])
def test_a_result_that_the_host_does_not_pass_on_can_be_copied(show: Show, refused: str) -> None:
    log = show(
        *(ASKED, *ANSWERED),
        ("see", "copy it into the conversation"),
        ("see", "orders runs at db-1"),
        ("click", "Copy"),
        ("see", "Copied."),
        answers=DONE,
        refused=[refused],
    )
    assert len(log["calls"]) == 1


def test_a_host_that_takes_messages_as_the_specification_shows_them_gets_an_object(show: Show) -> None:
    log = show(ASKED, *ANSWERED, GOES_ON, answers=DONE, onlyObjects=True)
    assert [type(message["content"]) for message in log["messages"]] == [list, dict]


def test_an_answer_that_could_not_be_sent_can_be_sent_again_and_a_running_call_is_waited_for(
    show: Show,
) -> None:
    refused = {"error": {"code": -32603, "message": "Too many requests"}}
    working = {"content": [], "_meta": {META: {"status": "working", "state": "state-2", "retryAfterMs": 1}}}
    fails = ("see", "The answer was not sent: Too many requests")
    log = show(ASKED, *ANSWERED, fails, SEND, GOES_ON, answers=[refused, {"result": working}, *DONE])
    assert log["calls"][0] == log["calls"][1]
    polled = log["calls"][2]["arguments"]
    assert (polled["answers"], polled["state"]) == ({}, "state-2")


def test_a_result_that_asks_nothing_is_not_shown(show: Show) -> None:
    log = show(ASKED, ("height", 100, 600), ANOTHER, ("see", "Virtual CPUs"))
    assert max(log["heights"]) > 100
    log = show(ANOTHER, ("gone",), ("height", 0, 0))
    assert set(log["heights"]) <= {0}


def asked_without_metadata(*, has_table: bool) -> dict[str, Any]:
    """What the view gets of a result that asks, from a host that drops its metadata."""
    client = Deployment(shop, capabilities=APPS, has_table=has_table)
    return {"content": client.call("order", item="tea")["content"]}


def test_a_host_that_drops_metadata_shows_the_link_to_the_questions(show: Show) -> None:
    log = show(
        ("result", asked_without_metadata(has_table=True)),
        ("see", "The questions did not arrive here"),
        ("axe",),
        ("click", "Open link"),
        ("tree",),
        ("teardown",),  # its response follows the link
    )
    violations, tree, _ = log["values"]
    assert violations == []
    assert [link.partition("?")[0] for link in log["links"]] == [PAGE_URL]
    assert PAGE_URL in tree
    assert "Send" not in tree


def test_a_host_that_drops_metadata_is_named_where_there_is_no_link(show: Show) -> None:
    log = show(
        ("result", {**asked_without_metadata(has_table=False), "_meta": {"other": 1}}),
        ("see", "They cannot be answered here."),
        ("tree",),
        *(ASKED, *ANSWERED, GOES_ON),
        answers=DONE,
    )
    assert "Open link" not in log["values"][0]


def test_a_view_that_is_opened_again_shows_where_the_call_stands(show: Show) -> None:
    log = show(
        ("result", asking({"size": SIZE}, issuedAt=1)),
        ("see", "provision_database has finished."),
        ("see", "orders runs at db-1"),
        answers=DONE,
    )
    assert [call["arguments"]["answers"] for call in log["calls"]] == [{}]
    assert (log["contexts"], log["messages"]) == ([], [])


def test_a_view_that_is_opened_again_shows_the_question_if_the_server_does_not_answer(show: Show) -> None:
    offline = {"error": {"code": -32000, "message": "offline"}}
    show(("result", asking({"size": SIZE}, issuedAt=1)), *ANSWERED, GOES_ON, answers=[offline, *DONE])


def test_a_user_may_take_longer_than_a_state_lives_or_answer_elsewhere(show: Show) -> None:
    renews, fills = ("evaluate", "renew()"), ("fill", "Virtual CPUs", "4")
    renewed = {"result": asking({"size": SIZE}, "state-2")}
    log = show(ASKED, fills, renews, SEND, GOES_ON, answers=[renewed, *DONE])
    renewal, answer = (call["arguments"] for call in log["calls"])
    assert (renewal["state"], renewal["answers"]) == ("state-1", {})
    assert (answer["state"], answers_of(log["calls"][1])) == ("state-2", {"size": {"vcpus": 4}})
    ends = ("see", "provision_database has finished.")
    log = show(ASKED, ("see", "Virtual CPUs"), renews, ends, ("tree",), answers=DONE)
    assert "Virtual CPUs" not in log["values"][1]


def test_an_expired_question_says_so_and_cannot_be_answered(show: Show) -> None:
    text = [{"type": "text", "text": "This question has expired."}]
    ended = {"content": text, "isError": True, "_meta": {META: {"status": "ended"}}}
    expires = ("see", "This question has expired.")
    log = show(ASKED, *ANSWERED, expires, ("tree",), answers=[{"result": ended}])
    assert "Send" not in log["values"][0]
    assert log["messages"] == []


def test_a_cancelled_call_cannot_be_answered(show: Show) -> None:
    ends = (("cancelled",), ("see", "This call was cancelled."), ("tree",), ("teardown",))
    log = show(ASKED, ("see", "Virtual CPUs"), *ends)
    assert "Send" not in log["values"][0]
    assert log["values"][1] == {}


def test_a_host_that_asks_through_the_view_gets_the_answer_itself(show: Show) -> None:
    log = show(("elicit", SIZE["params"]), *ANSWERED, ("elicited",), ("gone",))
    assert log["values"] == [{"action": "accept", "content": {"vcpus": 4}}]
    assert log["calls"] == []


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


def test_200_fields_and_5000_choices_are_shown(show: Show) -> None:
    many = [f"option {number}" for number in range(5_000)]
    fields: dict[str, Any] = {f"field_{number}": {"type": "string"} for number in range(200)}
    fields |= {"one": {"type": "string", "enum": many}, "some": {"type": "array", "items": {"enum": many}}}
    log = show(
        ("result", asking({"all": form("Many", fields, required=["one", "some"])})),
        ("select", "one", "option 4999"),
        ("fill", "Show choices that contain", "4998"),
        ("check", "option 4998"),
        ("fill", "field 199", "last"),
        *(SEND, GOES_ON),
        answers=DONE,
    )
    content = answers_of(log["calls"][0])["all"]
    assert content == {"field_199": "last", "one": "option 4999", "some": ["option 4998"]}


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


def test_the_view_follows_the_theme_of_the_host(show: Show) -> None:
    colour = (("see", "Virtual CPUs"), ("evaluate", "getComputedStyle(document.body).backgroundColor"))
    own = {"styles": {"variables": {"--color-background-primary": "rgb(1, 2, 3)"}}}
    log = show(ASKED, *colour, ("context", {"theme": "dark"}), *colour, ("context", own), *colour)
    assert log["values"] == ["rgb(255, 255, 255)", "rgb(31, 31, 31)", "rgb(1, 2, 3)"]


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


def test_the_view_of_the_guide_shows_the_result_of_its_tool(show: Show, tmp_path: Path) -> None:
    apps, [document] = (code_blocks("docs/guides/views.md", language) for language in ("python", "html"))
    for name in ("forecast.html", "map.html"):
        (tmp_path / name).write_text(document, "utf-8")
    play = Player(run_blocks(*apps, __file__=str(tmp_path / "app.py"))["server"])
    [shared] = play.read("ui://weather/map").contents
    assert (shared["mimeType"], shared["_meta"]["ui"].keys()) == (UI_MIME_TYPE, {"csp", "permissions"})
    [shown] = play.read("ui://weather/forecast").contents
    result = play.call("forecast", {"city": "Oslo"}).result
    log = show(("result", result), ("see", "3.5 °C"), view=shown["text"])
    assert log["complaints"] == []
