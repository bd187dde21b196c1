"""Calls in the console: forms, rounds, questions, results and errors, in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.console_browser import Console

pytest_plugins = ["support.console_browser"]

ASKED = ("wait", ".questions")
DONE = ("wait", ".result")


def test_a_call_is_a_timeline_of_rounds(console: Console) -> None:
    visit = console(
        "#/tools/new_database",
        ("fill", "name", "orders"),
        ("click", "Call"),
        ASKED,
        ("focused",),
        ("fill", "vcpus", "4"),
        ("select", "zone", "c"),
        ("fill", "owner", "ada@example.com"),
        ("click", "Accept"),
        ("see", "Keep it?"),
        ("focused",),
        ("check", "Yes"),
        ("click", "Accept"),
        DONE,
        ("texts", ".round h3"),
        ("texts", ".values"),
        ("texts", ".call-head .chip"),
        ("texts", ".given dd"),
    )
    focused, focused_next = visit.seen[3], visit.seen[9]
    rounds, values, status, given = visit.seen[13:]
    assert focused.startswith("vcpus")
    assert focused_next == "Yes"
    assert rounds == ["Round 1", "Round 2", "Round 3"]
    address = "address\n\norders.db.internal\n\nvcpus\n\n4\n\nzone\n\nc"
    assert values[0].replace("\n\n", "\n") == f"{address}\n\nowner\n\nada@example.com\n\nkept\n\ntrue".replace(
        "\n\n", "\n"
    )
    assert status == ["completed"]
    assert given == [
        "vcpus: 4 · disk_gb: 20.5 · zone: c · encrypted: yes · owner: ada@example.com",
        "yes",
    ]
    assert visit.complaints == []
