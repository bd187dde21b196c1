"""Functions of the console's modules that need no page: capabilities, channels, and parts of copied texts."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from support import skips
from support.project import FUNCTIONS

WEB: Final = FUNCTIONS.parent / "development/mcp_roundtrip_tools/console/web"
PROGRAM: Final = Path(__file__).with_name("call_functions.mjs")

Call = Callable[..., list[Any]]


@pytest.fixture(scope="module")
def call() -> Call:
    """Call functions of modules, each given as (module, function, argument, ...)."""
    node = shutil.which("node")
    if node is None:
        skips.skip(skips.NODE, "the modules of the console")

    def run(*calls: tuple[Any, ...]) -> list[Any]:
        given = json.dumps({"web": str(WEB), "calls": calls})
        done = subprocess.run(
            [node, str(PROGRAM)], input=given, capture_output=True, text=True, timeout=60, check=True
        )
        values: list[Any] = json.loads(done.stdout)
        return values

    return run


PROFILE, CHANNELS, TEXT, VOLATILE = (
    "mcp/profile.js",
    "mcp/channels.js",
    "copy_as/python_text.js",
    "copy_as/volatile.js",
)


def test_the_newest_calls_that_have_room_are_kept_for_a_reload(call: Call) -> None:
    calls = [
        {"id": f"c{number}", "rounds": [{"abort": {}, "durationMs": duration}]}
        for number, duration in enumerate([1, 2, None])
    ]
    state = {"calls": calls, "roots": [], "profile": {"user": "ada", "scopes": None, "capabilities": {}}}
    whole, short = call(
        ("session.js", "sessionText", "run-1", state), ("session.js", "sessionText", "run-1", state, 110)
    )
    kept = json.loads(whole)
    assert [each["id"] for each in kept["calls"]] == ["c0", "c1", "c2"]
    assert [each["rounds"][0].keys() for each in kept["calls"]] == [{"durationMs"}] * 3
    assert (kept["run"], kept["user"]) == ("run-1", {"user": "ada", "scopes": None})
    assert [each["id"] for each in json.loads(short)["calls"]] == ["c1", "c2"]


def test_a_capability_is_declared_and_removed_with_its_members(call: Call) -> None:
    form, url, tools = ["elicitation", "form"], ["elicitation", "url"], ["sampling", "tools"]
    assert call(
        (PROFILE, "declares", {"elicitation": {}}, form),
        (PROFILE, "declares", {"elicitation": {"url": {}}}, form),
        (PROFILE, "declare", {"elicitation": {}}, url, True),
        (PROFILE, "declare", {"elicitation": {"form": {}}, "roots": {}}, form, False),
        (PROFILE, "declare", {"sampling": {"tools": {}}}, tools, False),
        (PROFILE, "declare", {}, ["extensions", "io.modelcontextprotocol/tasks"], True),
    ) == [
        True,
        False,
        {"elicitation": {"form": {}, "url": {}}},
        {"roots": {}},
        {"sampling": {}},
        {"extensions": {"io.modelcontextprotocol/tasks": {}}},
    ]


def test_a_question_is_found_in_the_channel_that_it_took(call: Call) -> None:
    schema = {"type": "object", "properties": {"value": {"type": "integer"}}}
    key = 'Key: "size". The answer is an object that fits this JSON Schema: '
    asked = f"Ask the user.\n\nHow large?\nIn GB.\n{key}{json.dumps(schema)}\n\nElse decline."
    url = "http://127.0.0.1:3000/mcp/questions?token=abc-DEF_1"
    page, wait, model = (
        {"result": {"content": [{"type": "text", "text": text}], **more}}
        for text, more in (
            (f"Open {url}\nand call again.", {}),
            ("Call again.", {"_meta": {"mcp-roundtrip/parkedCall": {}}}),
            (asked, {}),
        )
    )
    visit: dict[str, Any] = {
        "error": {"code": -32042, "data": {"elicitations": [{"url": "https://a.example", "message": "m"}]}}
    }
    found = call(
        *((CHANNELS, "questionChannel", each) for each in (page, wait, model, visit, {"result": {}}))
    )
    assert found[0] == {"channel": "page", "url": url}
    assert found[1] == {"channel": "wait"}
    params = {"mode": "form", "message": "How large?\nIn GB.", "requestedSchema": schema}
    assert found[2] == {
        "channel": "model",
        "requests": {"size": {"method": "elicitation/create", "params": params}},
    }
    assert found[3]["elicitations"] == visit["error"]["data"]["elicitations"]
    assert found[4] is None


@pytest.mark.parametrize(
    "value",
    [
        'it\'s "quoted" \\ \n \t \x00 \x7f \u2028 é 😀',
        "'''",
        '"""',
        [None, True, False, 0, -1.5, 1e300, ""],
        {"a b": {"class": [{"deep": "x" * 120}, []]}, "": {}},
    ],
)
def test_values_are_written_as_python_reads_them(call: Call, value: Any) -> None:
    (written,) = call((TEXT, "literal", value))
    assert ast.literal_eval(written) == value


def test_keys_that_are_no_names_are_passed_as_a_dictionary(call: Call) -> None:
    pairs = [["size", 4], ["class", 1], ["city 1/place", "x"]]
    (parts,) = call((TEXT, "keywords", pairs))
    assert parts == ["size=4", '**{"class": 1, "city 1/place": "x"}']


def test_a_copied_test_does_not_compare_what_differs_in_the_next_run(call: Call) -> None:
    varying = ["db-1d7d7f8e9a0b1c2d", "at 2026-11-23T03:00", "see http://127.0.0.1:3000/x", "0" * 40]
    stable = ["$26.28 a month", "Hyderabad, India", "2026-11-23", "order 1234567"]
    found = call(*((VOLATILE, "isVolatile", text) for text in varying + stable))
    assert found == [True] * len(varying) + [False] * len(stable)
    part, value = call(
        (VOLATILE, "stablePart", "Keep db-1d7d7f8e9a0b1c2d at $26.28 a month?"),
        (VOLATILE, "withoutVolatile", {"id": varying[0], "price": [stable[0]]}, "ANY"),
    )
    assert part == "at $26.28 a month?"
    assert value == {"id": "ANY", "price": ["$26.28 a month"]}


def test_copied_texts_contain_nothing_that_a_terminal_or_a_shell_changes(call: Call) -> None:
    """Delete, a control sequence of 8 bits, an override of the direction, a line separator, zsh's history."""
    hostile = "a\x7f\x9b201~\u202eb\u2028!! \x1b[201~\nEOF\nid\u200b"
    request = {
        "url": "http://127.0.0.1:3000/mcp'",
        "headers": {"x-a": hostile[:6]},
        "body": {"arguments": {hostile: hostile}},
    }
    command, literal, remark = call(
        ("copy_as/curl.js", "curl", {"request": request}),
        (TEXT, "literal", hostile),
        (TEXT, "remark", f'{hostile}"""\\'),
    )
    for text in (command, literal, remark):
        assert [each for each in text if not each.isprintable() and each != "\n"] == []
    *_, sent, end, last = command.split("\n")
    assert (end, last, "!" in sent, "\n" in remark, '"' in remark) == ("EOF", "", False, False, False)
    assert json.loads(sent) == request["body"]
    assert ast.literal_eval(literal) == hostile


def test_an_error_code_of_a_server_is_no_source_text_in_a_copied_test(call: Call) -> None:
    round_ = {"response": {"body": {"error": {"code": "0\n    breakpoint()"}}}}
    (lines,) = call(("copy_as/player_assertions.js", "assertions", "done", round_))
    assert lines == ['    assert done.error["code"] == "0\\n    breakpoint()"']


def test_a_curl_command_quotes_what_a_shell_would_read(call: Call) -> None:
    body = '{"it\'s": "$(id) `id` EOF"}'
    request = {"url": "http://127.0.0.1:3000/mcp", "headers": {"x-a": "it's", "x-console": "1"}, "body": body}
    (command,) = call(("copy_as/curl.js", "curl", {"request": request}))
    script = f"curl() {{ printf '%s\\n' \"$@\"; cat; }}\n{command}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert "x-a: it's" in lines
    assert lines[-1] == body
    assert not any("x-console" in line for line in lines)
