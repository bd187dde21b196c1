"""docs/reference/clients.md: the calls of released clients that end with the user's answers.

`make clients-table` writes the table of docs/reference/clients.md.
"""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest

from mcp_roundtrip import Context, Server
from mcp_roundtrip.auth.callers import AuthMode, EventAuthenticator
from mcp_roundtrip.entry.front_door import FrontDoor
from mcp_roundtrip_testing import CallFailed, FakeClock, PlayedTask, Player, Round, load_module
from mcp_roundtrip_testing.client_profile import ClientProfile
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from support.examples import RESOLVE
from support.project import FUNCTIONS, ROOT

pytest_plugins = ["support.example_services", "support.approval"]

pytestmark = pytest.mark.usefixtures("example_services")

ALICE: Mapping[str, Any] = {"jwt": {"claims": {"iss": "https://id", "sub": "alice"}}}
PAGE = ROOT / "docs/reference/clients.md"

PLACE = "Hyderabad, Sindh, Pakistan"

NAMES = {"client": "client", "app": "App", "page": "page", "model": "model"}
"""The words of the table for channels."""


@dataclass(frozen=True)
class Example:
    """A call of a tool, and what its user answers."""

    tool: str
    arguments: Mapping[str, Any]
    answers: Mapping[str, Any]
    is_answered: Callable[[Any], bool] = field(default=bool)


@dataclass(frozen=True)
class Cell:
    """How one client's call ended: the channels of the answers, and whether the result has them."""

    channels: tuple[str, ...]
    is_answered: bool
    text: str = ""

    @property
    def word(self) -> str:
        return (
            ", ".join(dict.fromkeys(NAMES.get(each, each) for each in self.channels))
            if self.is_answered
            else "–"
        )


def examples(visit: Callable[[str], None], purpose: str) -> list[Example]:
    """Return the calls. `visit` does what happens at the page of the approval with this purpose."""
    return [
        Example(
            "get_weather", {"location": "Hyderabad"}, {"place": PLACE}, lambda done: done["place"] == PLACE
        ),
        Example(
            "update_work_item",
            RESOLVE,
            {"resolution": {"resolution": "Duplicate"}, "duplicate_of": {"duplicateOfId": 4301}},
            lambda done: "resolved as Duplicate of Bug #4301" in done["text"],
        ),
        Example(
            "provision_database",
            {"name": "orders"},
            {"size": "large", "region": "us-east-1", "keep": True},
            lambda done: (done["size"], done["region"], bool(done["host"])) == ("large", "us-east-1", True),
        ),
        Example(
            "request_approval",
            {"purpose": purpose, "amount_eur": 1250},
            {"page": visit},
            lambda done: done["approved"] is True,
        ),
    ]


@cache
def front_door() -> FrontDoor:
    """Return the front door of the examples, the same for all rounds, like the owners of its tools."""
    found: FrontDoor = load_module(FUNCTIONS / "front_door/app.py").front_door
    return found


def _player(
    profile: ClientProfile, application: Any, owners: Mapping[str, Server], clock: FakeClock | None = None
) -> Player:
    ports = {"auth": EventAuthenticator(AuthMode.JWT)}
    return Player(
        application,
        client=profile.name,
        authorizer=ALICE,
        owners=owners,
        ports=ports,
        clock=clock or FakeClock(),
    )


def _carry_out(player: Player, example: Example) -> Cell:
    try:
        played = player.call(example.tool, example.arguments, **example.answers)
        ended: Round | PlayedTask = played
        if "result" in played.message and played.result.get("resultType") == "task":
            ended = played.task
        if "error" in played.message or ended.failed:
            return Cell(played.channels, False, repr(ended))
        content = {"text": ended.text, **ended.result.get("structuredContent", {})}
        return Cell(played.channels, example.is_answered(content), repr(ended))
    except (CallFailed, KeyError) as error:
        return Cell((), False, str(error))


PROMPT = "triage"
ITEM = "User Story #4476: Save a search and be notified of new results"


def play_prompt(profile: ClientProfile, owners: Mapping[str, Server]) -> Cell:
    """Get a prompt as this client's user does: answer its question, or give the argument."""
    player = _player(profile, front_door, owners)
    played = player.prompt(PROMPT)
    channel = "argument"
    if "error" not in played.message and profile.answers_questions:
        played, channel = played.answer(work_item=ITEM), "client"
    else:
        played = player.prompt(PROMPT, {"workItemId": "4476"})
    text = "" if "error" in played.message else played.messages[0]["content"]["text"]
    return Cell((channel,), text.startswith(f"Triage {ITEM}"), repr(played))


# -- a call that takes longer than a request ----------------------------------------------------------------

STEPS = 6
STEP_S = 10
WAYS = {"task": "task", "checkpoint": "rounds", "parked": "another call"}
"""The words of the table for the outcomes of requests that do not finish the work."""


def play_long_work(profile: ClientProfile) -> Cell:
    """Carry out a call with 60 seconds of steps, each of which must run once."""
    clock, ran = FakeClock(), list[int]()
    server = Server("slow")

    @server.tool(task="optional")
    def work(ctx: Context) -> dict[str, list[int]]:
        return {"done": [ctx.step(f"step {number}", step, number) for number in range(STEPS)]}

    def step(number: int) -> int:
        clock.advance(STEP_S)
        ran.append(number)
        return number

    everything = list(range(STEPS))
    example = Example("work", {}, {}, lambda done: done["done"] == everything == ran)
    player = _player(profile, server, {}, clock)
    cell = _carry_out(player, example)
    completed = [fields for event, fields in player.observer.events if event == "request_completed"]
    outcomes = {fields.get("outcome") for fields in completed}
    # Without any of these, the whole call ran in one request, for which no event source waits.
    way = next((word for outcome, word in WAYS.items() if outcome in outcomes), None)
    return Cell(("" if way is None else way,), cell.is_answered and way is not None, cell.text)


def table(rows: Mapping[str, Mapping[str, str]]) -> str:
    """Return the table; clients with equal cells share a row, and tools with equal cells a column.

    `rows` are by client, then by tool.
    """
    columns: dict[tuple[str, ...], list[str]] = {}
    for tool in next(iter(rows.values())):
        columns.setdefault(tuple(cells[tool] for cells in rows.values()), []).append(tool)
    groups: dict[tuple[str, ...], list[str]] = {}
    for client, cells in zip(rows, zip(*columns, strict=True), strict=True):
        groups.setdefault(cells, []).append(client)
    lines = [
        "| | " + " | ".join(map(", ".join, columns.values())) + " |",
        "|---" * (len(columns) + 1) + "|",
        *(f"| {', '.join(clients)} | " + " | ".join(cells) + " |" for cells, clients in groups.items()),
    ]
    return "\n".join(lines) + "\n"


def replace_table(document: str, text: str) -> str:
    """Return the page with this table in the place of its own."""
    first_tool = re.escape(text.split(maxsplit=3)[2].rstrip(","))
    return re.sub(rf"\| \| {first_tool}.*\n(\|.*\n)*", lambda _: text, document)


LONG_WORK = "60 s of work"
PROFILES = [ClientProfile.load(name) for name in ClientProfile.names()]

Matrix = Mapping[str, Mapping[str, Cell]]
"""The cells by client and tool."""

_played: dict[str, Matrix] = {}


@pytest.fixture
def matrix(approval):
    """Play every example with every client, once for all tests."""
    if not _played:
        owners = load_function_servers(FUNCTIONS)
        decide = lambda url: approval.decide(approval.mailbox.link())  # noqa: E731 - as short as its use
        _played["matrix"] = {
            profile.name: {
                **{
                    each.tool: _carry_out(_player(profile, front_door, owners), each)
                    for each in examples(decide, profile.title)
                },
                PROMPT: play_prompt(profile, owners),
                LONG_WORK: play_long_work(profile),
            }
            for profile in PROFILES
        }
    return _played["matrix"]


def test_every_user_answers_every_example(matrix):
    cells = {(client, tool): cell for client, found in matrix.items() for tool, cell in found.items()}
    assert {where: cell.text for where, cell in cells.items() if not cell.is_answered} == {}


def test_the_page_shows_the_table_of_the_clients(matrix):
    words = {
        f"`{name}`": {tool if tool == LONG_WORK else f"`{tool}`": cell.word for tool, cell in cells.items()}
        for name, cells in matrix.items()
    }
    document = PAGE.read_text("utf-8")
    current = replace_table(document, table(words))
    if os.environ.get("WRITE_TABLES"):
        PAGE.write_text(current, "utf-8")
    assert table(words) in current, "the page has no table with these columns"
    assert document == current or os.environ.get("WRITE_TABLES"), "run `make clients-table`"
