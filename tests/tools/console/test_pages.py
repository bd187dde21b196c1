from typing import Any

from support.console_browser import ASKED, AXE, CALL, DONE, FITS, RECORDED, Step

pytest_plugins = ["support.console_browser"]


LONG = "a_very_long_name_" * 7
MANY = [
    {
        "name": f"tool_{number:03}" if number else LONG,
        "description": f"Tool number {number}. " + "Long description. " * 40,
        "inputSchema": {"type": "object", "properties": {LONG: {"type": "string", "description": LONG * 3}}},
    }
    for number in range(200)
]
QUESTION = {"type": "object", "properties": {"answer": {"type": "string"}}}
CACHED = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}


def test_everything_the_server_offers_is_listed(console):
    seen = console(
        "",
        ("texts", ".sidebar h2"),
        ("texts", ".sidebar .name"),
        ("texts", "main h1"),
        ("texts", ".home .rows li > code:first-child"),
        ("texts", ".left-out li"),
        ("evaluate", "document.title"),
        ("open", "#/tools/no_such_tool"),
        ("texts", "main h1"),
        ("open", "#/nowhere"),
        ("texts", "main h1"),
        ("open", "#/tools/image"),
        ("evaluate", "document.title"),
        ("texts", ".sidebar [aria-current=page]"),
        ("evaluate", "document.activeElement.tagName"),
    )
    groups, names, heading, functions, left_out, *others = seen
    assert groups == ["Tools8", "Prompts1", "Resources1", "Resource templates1", "Runner"]
    assert names[:2] == ["new_database", "every_type"]
    assert names[-3:] == ["greet", "index", "Notes"]
    assert (heading, functions) == (["Console tests"], ["FrontDoor", "Tools"])
    assert [line.partition(": ")[0] for line in left_out] == ["Node.Runtime"]
    assert others[:2] == ["Console tests · console-tests", ["No such tool"]]
    assert ["no such page" in title for title in others[2]] == [True]
    assert others[3:] == ["image · console-tests", ["image"], "H1"]


def test_the_list_is_searched_and_walked_with_the_keyboard(console):
    seen = console(
        "",
        ("answer", "tools/list", {**CACHED, "tools": MANY}),
        ("reload",),
        ("count", ".sidebar li"),
        ("evaluate", "document.querySelectorAll('.sidebar a[tabindex=\"0\"]').length"),
        ("press", "/"),
        ("type", "NUMBER 19"),
        ("texts", ".sidebar [role=status]"),
        ("press", "ArrowDown", "ArrowDown", "End", "Home", "ArrowDown"),
        ("focused",),
        ("press", "Enter"),
        ("wait", ".feature"),
        ("texts", "main h1"),
        ("focus", "#search"),
        ("press", "ControlOrMeta+a"),
        ("type", "nothing like this"),
        ("texts", ".sidebar .empty"),
        FITS,
        ("open", f"#/tools/{LONG}"),
        FITS,
        ("size", 320, 640),
        FITS,
    )
    entries, stops, found, *tool, empty = seen
    # 200 tools, the prompt, the resource, the template and the pages, in one stop of the Tab key.
    assert (entries, stops) == (206, 1)
    assert found == ["12 found"]
    assert tool == ["tool_119", ["tool_119"]]
    assert len(empty) == 1


IN_BOTH: tuple[Step, ...] = (
    *(("scheme", "dark"), ("size", 320, 800), AXE, FITS),
    *(("scheme", "light"), ("size", 1280, 800), AXE, FITS),
)
PAGES: list[Step] = [
    ("open", "#/tools/hostile"),
    CALL,
    ASKED,
    RECORDED,
    *IN_BOTH,
    ("check", "Yes"),
    ("click", "Accept"),
    DONE,
    RECORDED,
    ("shows", ".round:last-child h2"),  # the page has scrolled to it
    ("click", "Response"),
    ("wait", ".panel pre"),
    ("click", "Server"),
    *IN_BOTH,
    ("open", "#/tools/in_one_round"),
    CALL,
    ASKED,
    *IN_BOTH,
    ("open", "#/tools/every_type"),
    CALL,
    *IN_BOTH,
    ("open", "#/"),
    ("wait", ".left-out li"),
    *IN_BOTH,
]


def test_pages_are_accessible_and_fit_every_screen(console):
    console("", *IN_BOTH, *PAGES)


def test_a_call_is_made_without_a_mouse(console):
    seen = console(
        "",
        ("press", "Tab"),
        ("focused",),
        ("press", "Enter", "Tab"),
        ("focused",),
        ("open", "#/tools/hostile"),
        ("press", "Tab"),
        ("focused",),
        ("press", "Tab"),
        ("focused",),
        ("press", "Enter"),
        ASKED,
        ("focused",),
        ("press", "Space", "Enter"),
        DONE,
        ("focused",),
        ("texts", "#announcements"),
        ("texts", ".answer"),
    )
    assert seen[0].startswith("Skip to ")
    assert seen[1:5] == ["Copy the URL", "Definition", "text", "Yes"]
    assert seen[5:] == ["Round 2", ["hostile, round 2: completed"], ["yes"]]


def test_a_narrow_screen_has_the_list_behind_a_button(console):
    seen = console(
        "#/tools/hostile",
        ("count", ".sidebar"),
        ("click", "Menu"),
        ("press", "Escape"),
        ("evaluate", "document.activeElement.textContent"),
        ("count", ".sidebar"),
        ("press", "Enter"),
        ("count", ".sidebar"),
        ("count", "main h1"),  # behind the list, where the Tab key would go
        ("evaluate", "document.querySelector('.sidebar a').click()"),
        ("wait", ".call-form"),
        ("count", ".sidebar"),
        ("texts", "main h1"),
        options={"viewport": {"width": 360, "height": 740}},
    )
    assert seen == [0, "Menu", 0, 1, 0, 0, ["new_database"]]


def test_a_server_that_does_not_answer_is_reported(console):
    seen = console(
        "",
        ("abort", "server/discover"),
        ("reload",),
        ("texts", ".sidebar .error"),
        ("texts", "main .error"),
        refused=True,
    )
    [message], of_the_page = seen
    assert message.startswith("The server does not answer.")
    assert of_the_page == [message]


def test_unusual_schemas_and_results_do_not_break_the_page(console):
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    strings = {"type": "array", "items": {"type": "string"}}
    members = {
        "anything": True,
        "untyped": {},
        "either": {"type": ["string", "null"]},
        "ones": {"enum": [1, None]},
        "node": {"$ref": "#/$defs/Node"},
        "itself": {"$ref": "#/properties/itself"},
        "items": {"type": "array"},
        "tuple": {"type": "array", "prefixItems": [{}]},
        "none": {"anyOf": [strings, {"type": "null"}], "default": None},
        "one": {"oneOf": [{"const": 5, "title": "five"}]},
    }
    schema = {"type": "object", "properties": members, "$defs": {"Node": node}, "required": "either"}
    tool = {"name": "unusual", "inputSchema": schema}
    seen = console(
        "",
        ("answer", "tools/list", {**CACHED, "tools": [tool, {"name": "bare"}]}),
        ("reload",),
        ("open", "#/tools/unusual"),
        ("texts", ".label-name"),
        ("fill", "anything", "[1]"),
        ("check", "five"),
        ("answer", "tools/call", {**CACHED, "content": 5}),
        CALL,
        ("see", "does not have the shape of a result"),
        ("texts", ".call-arguments"),
        ("open", "#/tools/bare"),
        ("answer", "tools/call", {"resultType": "input_required", "inputRequests": {"a": None}}),
        CALL,
        ("see", "does not have the shape of a result"),
    )
    assert seen == [[*members], ['{"anything":[1],"one":5}']]


def test_a_page_that_follows_the_server_recovers(console):
    console(
        "#/tasks",
        ("see", "No task yet."),
        ("evaluate", "window.real = fetch; window.fetch = () => Promise.reject(new TypeError()); null"),
        ("see", "The server does not answer."),
        ("evaluate", "window.fetch = window.real; null"),
        ("see", "No task yet."),
    )


def test_what_was_typed_survives_a_change_of_the_lists(console):
    def tool(*names: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in names}}
        return {**CACHED, "tools": [{"name": "typed", "inputSchema": schema}]}

    question = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": QUESTION}}
    seen = console(
        "",
        ("answer", "tools/list", tool("one")),
        ("reload",),
        ("open", "#/tools/typed"),
        ("answer", "tools/call", {"resultType": "input_required", "inputRequests": {"q": question}}),
        CALL,
        ASKED,
        ("fill", "answer", "half"),
        ("fill", "one", "kept"),
        ("answer", "tools/list", tool("one", "two")),
        ("change_sources",),
        ("return",),
        ("wait", ".call-form .field:nth-child(2)"),
        ("evaluate", "[...document.querySelectorAll('main .input')].map((each) => each.value)"),
        ("focused",),
    )
    assert seen == [["kept", "", "half"], "one"]
