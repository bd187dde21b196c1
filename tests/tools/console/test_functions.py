"""Functions of the console's modules that need no page: URIs that the server reads, and copied texts."""

import ast
import json
from pathlib import Path
from typing import Final

import pytest

from mcp_roundtrip.protocol.resource_uris import UriTemplate, normalize_uri
from support import skips
from support.interpreters import answering, output_of
from support.project import FUNCTIONS

WEB: Final = FUNCTIONS.parent / "development/mcp_roundtrip_tools/console/web"
PROGRAM: Final = Path(__file__).with_name("call_functions.mjs")


@pytest.fixture(scope="module")
def call():
    """Call functions of modules, each given as (module, function, argument, ...)."""
    node = skips.find_node("the modules of the console")
    with answering(node, PROGRAM) as exchange:
        yield lambda *calls: exchange({"web": str(WEB), "calls": calls})


TEXT, PLAYER = "copy_as/python_text.js", "copy_as/player.js"


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
def test_values_are_written_as_python_reads_them(call, value):
    (written,) = call((TEXT, "literal", value))
    assert ast.literal_eval(written) == value


def test_a_copied_test_does_not_compare_what_differs_in_the_next_run(call):
    varying = ["db-1d7d7f8e9a0b1c2d", "at 2026-11-23T03:00", "see http://127.0.0.1:3000/x", "0" * 40]
    stable = ["$26.28 a month", "Hyderabad, India", "2026-11-23", "order 1234567"]
    found = call(*((PLAYER, "isVolatile", text) for text in varying + stable))
    assert found == [True] * len(varying) + [False] * len(stable)
    (value,) = call((PLAYER, "withoutVolatile", {"id": varying[0], "price": [stable[0]]}))
    assert value == {"id": "ANY", "price": ["$26.28 a month"]}


def test_copied_texts_contain_nothing_that_a_terminal_or_a_shell_changes(call):
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


def test_an_error_code_of_a_server_is_no_source_text_in_a_copied_test(call):
    error = {"error": {"code": "0\n    breakpoint()"}}
    body = {"method": "tools/call", "params": {"name": "a"}}
    sent = {"request": {"body": body, "headers": {}}, "response": {"body": error}, "answers": {}}
    profile = {"protocolVersion": "2026-07-28", "capabilities": {}}
    recorded = {"name": 'a"""\n', "profile": profile, "rounds": [sent], "taskUpdates": []}
    (text,) = call((PLAYER, "player", recorded, {"file": "app.py"}))
    assert '    assert done.error["code"] == "0\\n    breakpoint()"\n' in text
    ast.parse(text)


def test_a_curl_command_quotes_what_a_shell_would_read(call):
    body = {"it's": "$(id) `id` EOF"}
    request = {"url": "http://127.0.0.1:3000/mcp", "headers": {"x-a": "it's"}, "body": body}
    (command,) = call(("copy_as/curl.js", "curl", {"request": request}))
    script = f"curl() {{ printf '%s\\n' \"$@\"; cat; }}\n{command}"
    lines = output_of("bash", "-c", script).splitlines()
    assert "x-a: it's" in lines
    assert json.loads(lines[-1]) == body


@pytest.mark.parametrize(
    ("template", "values"),
    [
        ("notes://{folder}/{name}", {"folder": "a/b ü", "name": "?&#"}),
        ("notes://{folder}/{name}", {"folder": "it's (new)!", "name": "*"}),
        ("file:///{+path}", {"path": "home/ada/notes.md"}),
        ("search://all{?q,page}", {"q": "a&b=c", "page": "2"}),
        ("search://all{?q,page}", {"page": "2"}),
        ("books://{id}{/page}", {"id": "1", "page": "7"}),
        ("books://{id}{/page}", {"id": "1"}),
    ],
)
def test_the_server_reads_from_a_uri_what_was_filled_in(call, template, values):
    parsed = UriTemplate.parse(template)
    variables, uri = call(
        ("mcp/uri_template.js", "variablesOf", template), ("mcp/uri_template.js", "expand", template, values)
    )
    assert [each["name"] for each in variables] == [*parsed.variables]
    assert {each["name"] for each in variables if each["required"]} <= values.keys()
    match = parsed.match(normalize_uri(uri))
    assert match is not None
    assert match.values == values
