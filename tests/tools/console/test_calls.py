from typing import Final

from support.console_browser import ASKED, CALL, DONE, RECORDED

pytest_plugins = ["support.console_browser"]

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>\\u202e&amp;"
"""As the page writes the hostile text of the test's application: the override of the direction is visible."""


def values(*pairs):
    return ["\n".join(str(each) for each in pairs)]


def compact(texts):
    return [text.replace("\n\n", "\n") for text in texts]


def test_a_call_is_a_timeline_of_rounds(console):
    seen = console(
        "#/tools/new_database",
        ("fill", "name", "orders"),
        CALL,
        ASKED,
        ("fill", "vcpus", "4"),
        ("select", "zone", "c"),
        ("fill", "owner", "ada@example.com"),
        ("click", "Accept"),
        ("see", "Keep it?"),
        ("check", "Yes"),
        ("click", "Accept"),
        DONE,
        RECORDED,
        ("texts", ".round h2"),
        ("texts", ".answer"),
        ("unfold",),
        ("texts", ".call-head .chip"),
        ("texts", ".values"),
        ("texts", ".given dd"),
        ("texts", ".environment"),
        ("texts", ".logs"),
    )
    rounds, answers, status, result, given, environments, logs = seen
    assert rounds == ["Round 1", "Round 2", "Round 3"]
    assert answers == given, "an answered round is one line"
    assert status == ["completed"]
    assert compact(result) == values(
        *("address", "orders.db.internal", "vcpus", 4, "zone", "c"),
        *("owner", "ada@example.com", "kept", "true"),
    )
    assert given == ["vcpus: 4 · disk_gb: 20.5 · zone: c · encrypted: yes · owner: ada@example.com", "yes"]
    assert [text.replace("\n", " ") for text in environments] == [
        "Tools-1 new",
        "Tools-1 warm",
        "Tools-1 warm",
    ]
    assert compact(logs)[-1] == "print\ncreating orders with 4 CPUs"  # after the settings that are missing


def test_raw_messages_and_the_servers_part_are_shown_on_demand(console):
    seen = console(
        "#/tools/tool_error",
        CALL,
        DONE,
        RECORDED,
        ("count", ".panel"),
        ("click", "Request"),
        ("texts", ".panel"),
        ("click", "Response"),
        ("texts", ".panel"),
        ("click", "Server"),
        ("texts", ".server-rows li"),
        ("click", "Server"),
        ("count", ".panel"),
    )
    before, [request], [response], rows, after = seen
    assert before == after == 0
    for text in ("mcp-method", "tools/call", "mcp-name", "tool_error", "2026-07-28", "clientCapabilities"):
        assert text in request
    for text in ("HTTP 200", "apigw-requestid", '"isError": true', "There is no such order: 42."):
        assert text in response
    assert [row.split("\n")[0].split("-")[0] for row in rows] == ["FrontDoor", "Tools"]


def test_a_form_has_a_field_for_every_type_of_argument(console):
    names = ["text", "whole", "decimal", "flag", "choice", "names", "numbers", "address"]
    seen = console(
        "#/tools/every_type",
        CALL,
        ("texts", ".field .error"),
        ("focused",),
        ("fill", "text", "two\nlines"),
        ("fill", "whole", "1.5"),
        ("fill", "decimal", "-2e3"),
        ("check", "No"),
        ("check", "two"),
        ("fill", "address", '{"street": "Main'),
        ("fill", "pattern", "ABC"),
        CALL,
        ("texts", ".field .error"),
        ("fill", "whole", "7"),
        ("fill", "address", '{"street": "Main", "number": 3}'),
        ("fill", "pattern", "abc"),
        ("fill", "names", "Ada\n\nBob"),
        ("fill", "numbers", "1\n2.5"),
        CALL,
        ("texts", ".field .error"),
        ("fill", "numbers", "1\n2"),
        ("click", "Edit as JSON"),
        ("evaluate", "JSON.parse(document.querySelector('textarea.code').value)"),
        ("fill", "Arguments", '{"text": 5}'),
        CALL,
        DONE,
        ("texts", ".call-head .chip"),
        ("fill", "Arguments", "{"),
        CALL,
        ("texts", ".field .error"),
    )
    empty, focused, invalid, last, arguments, chips, no_json = seen
    choose = ["Choose an option."] * 2
    assert empty == ["Enter a value."] * 3 + choose + ["Enter a value."] * 3
    assert focused == names[0]
    whole, first, second, address, pattern = invalid
    assert "whole number" in whole
    assert first == second == "Enter a value."
    assert "not JSON" in address
    assert "matches ^[a-z]+$" in pattern
    assert last == [whole]
    assert arguments == {
        "text": "two\nlines",
        "whole": 7,
        "decimal": -2000,
        "flag": False,
        "choice": "two",
        "names": ["Ada", "Bob"],
        "numbers": [1, 2],
        "address": {"street": "Main", "number": 3},
        "pattern": "abc",
    }
    assert chips == ["failed"]  # JSON is sent as it is; the server has the last word
    assert len(no_json) == 1


def test_several_questions_are_answered_in_one_round(console):
    seen = console(
        "#/tools/in_one_round",
        CALL,
        ASKED,
        ("texts", ".question-kind code"),
        ("evaluate", "document.querySelector('input[value=decline]').click()"),
        ("fill", "Which number?", "12"),
        ("fill", "Reply of the model", "Roses are red."),
        ("focus", "section:last-of-type textarea"),
        ("press", "End"),
        ("type", "\nfile:///srv"),
        ("click", "Send the answers"),
        DONE,
        ("unfold",),
        ("texts", ".given dd"),
        ("click", "Answer differently"),
        ("fill", "Which colour?", "blue"),
        ("fill", "Which number?", "12"),
        ("click", "Send the answers"),
        ("wait", ".round:nth-child(3) .result"),
        ("texts", ".round:nth-child(3) .result"),
    )
    keys, given, [result] = seen
    assert keys == ["colour", "number", "poem", "roots"]
    assert given == ["declined", "12", "Roses are red.", "file:///home/ada/engine, file:///srv"]
    assert '"colour": "blue"' in result
    assert '"number": 12' in result
    assert '"file:///srv"' in result


def test_texts_of_tools_are_never_markup(console):
    seen = console(
        "#/tools/hostile",
        ("texts", ".description"),
        CALL,
        ASKED,
        RECORDED,
        ("texts", ".question .label-name"),
        ("texts", ".logs p"),
        ("check", "Yes"),
        ("click", "Accept"),
        DONE,
        ("texts", ".values dt"),
        ("click", "Response"),
        ("open", "#/templates/" + "notes%3A%2F%2F%7Bfolder%7D%2F%7Bname%7D"),
        ("fill", "folder", "a/b"),
        ("fill", "name", "<b>"),
        ("click", "Read"),
        DONE,
        ("texts", ".call-arguments"),
        ("texts", "pre.code"),
        ("count", "main img, main script, main b"),
    )
    description, question, logs, result, *of_the_template = seen
    assert description == ["Ask with markup <b>and</b> return it."]
    assert question == result == [HOSTILE]
    # A new process logs the settings that are missing, too.
    assert [line for line in compact(logs) if "setting_missing" not in line] == [
        f"warning\n{HOSTILE}",
        f"progress\n1 of 2 · {HOSTILE}",
        f"print\n{HOSTILE}",
    ]
    assert of_the_template == [["notes://a%2Fb/%3Cb%3E"], [f"a/b <b>: {HOSTILE}"], 0]


def test_a_web_page_is_opened_without_access_to_the_console_and_nothing_else_is_opened(console):
    urls = ("javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "http:")
    pages = {
        url: {"method": "elicitation/create", "params": {"mode": "url", "message": "m", "url": url}}
        for url in urls
    }
    asking = {"resultType": "input_required", "inputRequests": pages, "requestState": "s"}
    *seen, links, errors = console(
        "#/tools/open_page",
        CALL,
        ASKED,
        ("texts", ".address"),
        ("evaluate", "[...document.querySelectorAll('.page a')].map((a) => [a.href, a.rel, a.target])"),
        ("click", "Continue"),
        DONE,
        ("texts", ".result .prose"),
        ("answer", "tools/call", asking),
        CALL,
        ("wait", ".call[open] .questions"),
        ("count", ".call[open] .page a"),
        ("texts", ".call[open] .page .error"),
        refused=True,
    )
    address = "https://example.com/sign-in?x=1"
    assert seen == [[address], [[address, "noopener noreferrer", "_blank"]], ["signed in"]]
    assert (links, len(errors)) == (0, len(urls))


SUGGESTED: Final = """(async () => {
  const values = () => [...document.activeElement.list.options].map(({ value }) => value);
  while (values().length !== 2) await new Promise(requestAnimationFrame);
  return values();
})()"""


def test_results_have_images_and_links_and_arguments_of_prompts_are_completed(console):
    seen = console(
        "#/tools/image",
        CALL,
        ("wait", ".result img"),
        ("evaluate", "document.querySelector('.result img').naturalWidth"),
        ("evaluate", "document.querySelector('.resource-link a').click()"),
        ("see", "notes://index"),
        ("click", "Read"),
        DONE,
        ("texts", "pre.code"),
        ("open", "#/prompts/greet"),
        ("fill", "name", "Ada"),
        ("focus", "input[list] >> nth=1"),
        ("type", "E"),
        ("evaluate", SUGGESTED),
        ("type", "speranto"),
        ("press", "Enter"),
        DONE,
        ("texts", ".result .prose"),
    )
    of_results, of_prompt = seen[:2], seen[2:]
    assert of_results == [1, ['{\n  "notes": 3\n}']]
    assert of_prompt == [["English", "Esperanto"], ["Greet Ada in Esperanto."]]
