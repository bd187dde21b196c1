"""docs/reference/clients.md: the calls of released clients that end with the user's answers.

`make clients-table` writes the table of docs/reference/clients.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import pytest

from mcp_roundtrip_testing.client_profile import ClientProfile
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from support.approval import Approval
from support.client_matrix import (
    PAGE,
    PROMPT,
    Cell,
    examples,
    names_table,
    play,
    play_long_work,
    play_prompt,
    replace_table,
    table,
)
from support.project import FUNCTIONS

pytest_plugins = ["support.example_services", "support.approval"]

pytestmark = pytest.mark.usefixtures("example_services")

LONG_WORK = "60 s of work"
PROFILES = [ClientProfile.load(name) for name in ClientProfile.names()]

Matrix = Mapping[str, Mapping[str, Cell]]
"""The cells by client and tool."""

_played: dict[str, Matrix] = {}


@pytest.fixture
def matrix(approval: Approval) -> Matrix:
    """Play every example with every client, once for all tests."""
    if not _played:
        owners = load_function_servers(FUNCTIONS)
        decide = lambda url: approval.decide(approval.mailbox.link())  # noqa: E731 - as short as its use
        _played["matrix"] = {
            profile.name: {
                **{each.tool: play(profile, each, owners) for each in examples(decide, profile.title)},
                PROMPT: play_prompt(profile, owners),
                LONG_WORK: play_long_work(profile),
            }
            for profile in PROFILES
        }
    return _played["matrix"]


def unanswered(matrix: Matrix) -> dict[tuple[str, str], str]:
    """Return the text of each cell without the user's answers."""
    return {
        (client, tool): cell.text
        for client, cells in matrix.items()
        for tool, cell in cells.items()
        if not cell.is_answered
    }


def test_every_user_answers_every_example(matrix: Matrix) -> None:
    assert not unanswered(matrix)


def test_a_question_goes_through_the_channel_that_the_client_shows(matrix: Matrix) -> None:
    for profile in PROFILES:
        cells = matrix[profile.name]
        expected = "client" if profile.answers_forms else "App" if profile.shows_apps else "page"
        assert (cells[PROMPT].word == "client") is (profile.answers_forms and not profile.is_legacy)
        for tool in ("update_work_item", "provision_database"):
            assert cells[tool].word == expected, (profile.name, tool)


def test_the_page_shows_the_table_of_the_clients(matrix: Matrix) -> None:
    words = {
        f"`{name}`": {tool if tool == LONG_WORK else f"`{tool}`": cell.word for tool, cell in cells.items()}
        for name, cells in matrix.items()
    }
    document = PAGE.read_text("utf-8")
    current = replace_table(replace_table(document, table(words)), names_table(PROFILES))
    if os.environ.get("WRITE_TABLES"):
        PAGE.write_text(current, "utf-8")
    for expected in (table(words), names_table(PROFILES)):
        assert expected in current, "the page has no table with these columns"
    assert document == current or os.environ.get("WRITE_TABLES"), "run `make clients-table`"
