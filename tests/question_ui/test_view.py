"""The view of the question app in a browser, inside a host made with the official app-bridge."""

import json
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from support.client_requests import APPS
from support.deployment import Deployment
from support.question_app import (
    ANSWERED,
    ASKED,
    DONE,
    GOES_ON,
    KEEP,
    META,
    SEND,
    SIZE,
    Show,
    answers_of,
    asking,
    complete,
)
from support.stored_tasks import url as url_question

pytest_plugins = ["support.question_app"]

shop = Server("shop", channels=("app", "page"))


@shop.tool
def order(ctx: Context, item: str) -> str:
    """Order something."""
    return str(ctx.elicit("count", f"How many {item}?", int))


PAGE_URL = "https://mcp.test/mcp/questions"
ANOTHER = ("result", {"content": [{"type": "text", "text": "nothing to ask"}]})


def test_an_answer_goes_to_the_answer_tool_and_the_result_to_the_model(show: Show) -> None:
    log = show(
        ("result", asking({"size": SIZE}, instruction="Call provision_database again.")),
        *(*ANSWERED, GOES_ON),
        ("evaluate", "document.querySelector('details[open] pre').innerText"),
        answers=DONE,
    )
    (call,) = log["calls"]
    answers = {"size": {"action": "accept", "content": {"vcpus": 4}}}
    asked = {"tool": "provision_database", "arguments": {"name": "orders"}, "state": "state-1"}
    assert call == {"name": "answer_questions", "arguments": {**asked, "answers": answers}}
    (context,) = log["contexts"]
    assert [block["text"] for block in context["content"]][1:] == ["orders runs at db-1"]
    assert log["values"] == ["orders runs at db-1"], "the result is shown, and not folded away"
    (message,) = log["messages"]
    assert message["role"] == "user"
    assert message["content"][0]["text"].endswith("Call provision_database again.")
    assert log["complaints"] == []


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
    opens = (("click", "Open link"), ("see", "The host did not open the link."))
    show(("result", asking({"sign": question})), *opens, refused=["link"])


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


def test_a_user_may_take_longer_than_a_host_to_let_the_result_pass(show: Show) -> None:
    waits = ("evaluate", "setTimeout = (end, ms) => { if (ms < 60_000) queueMicrotask(end); }")
    show(ASKED, *ANSWERED[:1], waits, SEND, GOES_ON, answers=DONE)


def test_the_result_is_shown_while_a_user_considers_whether_to_let_it_pass(show: Show) -> None:
    show(ASKED, *ANSWERED, ("see", "orders runs at db-1"), answers=DONE, isUndecided=True)


def test_a_question_that_arrives_while_a_user_considers_a_result_can_be_answered(show: Show) -> None:
    second = (("result", asking({"keep": KEEP}, "state-2")), ("check", "Yes"), SEND, ("see", "It is kept."))
    answers = [*DONE, {"result": complete("It is kept.")}]
    log = show(ASKED, *ANSWERED, ("see", "orders runs at db-1"), *second, answers=answers, isUndecided=True)
    assert [call["arguments"]["state"] for call in log["calls"]] == ["state-1", "state-2"]


def test_a_result_that_a_user_considers_for_too_long_is_not_passed_on_again(show: Show) -> None:
    second = ("evaluate", "count = 0; setTimeout = (end) => { if (++count === 2) queueMicrotask(end); }")
    copied = ("see", "copy it into the conversation")
    assert len(show(ASKED, *ANSWERED[:1], second, SEND, copied, answers=DONE)["contexts"]) == 1


@pytest.mark.parametrize("refused", ["context", "message"])
def test_a_result_that_the_host_does_not_pass_on_can_be_copied(show: Show, refused: str) -> None:
    log = show(
        *(ASKED, *ANSWERED),
        ("see", "copy it into the conversation"),
        ("see", "orders runs at db-1"),
        ("click", "Copy"),
        ("see", "Copied."),
        ("tree",),
        answers=DONE,
        refused=[refused],
    )
    assert len(log["calls"]) == 1
    assert 'group "Result"' in log["values"][0]


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
    assert set(show(ANOTHER, ("gone",), ("height", 0, 0))["heights"]) <= {0}


def test_a_message_that_does_not_come_from_the_host_is_ignored(show: Show) -> None:
    asks = {"jsonrpc": "2.0", "method": "ui/notifications/tool-result", "params": ASKED[1]}
    sends = f"addEventListener('message', () => end(main.hidden)); postMessage({json.dumps(asks)}, '*')"
    assert show(("evaluate", f"new Promise((end) => {{ {sends} }})"))["values"] == [True]


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
    log = show(ASKED, ("see", "Virtual CPUs"), ("cancelled",), ("see", "This call was cancelled."), ("tree",))
    assert "Send" not in log["values"][0]


def test_the_view_declares_what_it_supports_and_answers_every_request_of_the_host(show: Show) -> None:
    log = show(("capabilities",), ("request", "ping"), ("request", "tools/list"), ("teardown",))
    assert log["values"] == [{"availableDisplayModes": ["inline"]}, {}, -32601, {}]


def test_a_host_that_asks_through_the_view_gets_the_answer_itself(show: Show) -> None:
    asks_again = (("elicit", KEEP["params"]), ("see", "Keep it?"), ("evaluate", "innerWidth"))
    log = show(("elicit", SIZE["params"]), *ANSWERED, ("elicited",), ("gone",), *asks_again)
    assert log["values"] == [{"action": "accept", "content": {"vcpus": 4}}, 640]
    assert log["calls"] == []


def test_the_view_follows_the_theme_of_the_host(show: Show) -> None:
    colour = (("see", "Virtual CPUs"), ("evaluate", "getComputedStyle(document.body).backgroundColor"))
    own = {"variables": {"--color-background-primary": "rgb(1, 2, 3)"}}
    fonts = [f"@font-face {{ font-family: {name}; src: url(data:,) }}" for name in ("A", "B")]
    contexts = [{"theme": "dark"}, *({"styles": {**own, "css": {"fonts": each}}} for each in fonts)]
    changes = [step for each in contexts for step in (("context", each), *colour)]
    kept = "[document.documentElement.style.cssText, ...[...document.fonts].map((font) => font.family)]"
    log = show(ASKED, *colour, *changes, ("evaluate", kept), variables={"--font-sans": "serif"})
    *colours, last = log["values"]
    assert colours == ["rgb(255, 255, 255)", "rgb(31, 31, 31)", *["rgb(1, 2, 3)"] * 2]
    assert last == ["color-scheme: dark; --font-sans: serif; --color-background-primary: rgb(1, 2, 3);", "B"]
