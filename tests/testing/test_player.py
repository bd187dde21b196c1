"""`Player`, with which tool authors test tools."""

import json
import subprocess
import sys
from itertools import pairwise
from random import Random

import pytest

from mcp_roundtrip import AsyncContext, Context, FrontDoor, Retry, Server, StepFailed
from mcp_roundtrip_testing import WITH_TASKS, Player, Round
from mcp_roundtrip_testing.execution_environments import load_server
from mcp_roundtrip_tools.catalog.catalog import catalog_of

server = Server("x")
RAN: list[str] = []


@server.tool
def provision(ctx: Context, name: str) -> list[object]:
    size = ctx.elicit("size", f"How large should {name} be?", int)
    made = ctx.step("create", lambda: RAN.append("create") or name.upper())
    keep = ctx.elicit("keep", "Keep it?", bool)
    return [size, made, keep]


def test_a_call_can_be_played_round_by_round_with_access_to_its_journal():
    asked = Player(server).call("provision", {"name": "db"})
    assert asked.question("size") == "How large should db be?"
    confirm = asked.answer(size=4)
    assert confirm.journal is not None
    assert [entry.key for entry in confirm.journal.entries] == ["size", "create"]
    ended = confirm.answer(keep=False)
    assert ended.structured == [4, "DB", False]
    assert len({played.message["id"] for played in (asked, confirm, ended)}) == 3


def test_a_uri_outside_of_ascii_is_encoded_in_its_header():
    notes = Server("x")

    @notes.resource("notes://{name}")
    def note(name: str) -> str:
        return f"About {name}"

    assert Player(notes).read("notes://Zürich").contents[0]["text"] == "About Zürich"


def test_an_answer_is_used_once_so_that_a_repeated_question_is_visible():
    asked = Player(server).call("provision", {"name": "db"}, size="many")
    assert "not accepted" in asked.question("size")


def test_with_always_replay_every_step_ends_its_round():
    RAN.clear()
    playing = Player(server, always_replay=True)
    assert playing.call("provision", {"name": "db"}, size=4, keep=True).structured == [4, "DB", True]
    assert RAN == ["create"]
    assert "checkpoint" in [fields.get("outcome") for _, fields in playing.observer.events]


def test_with_always_replay_each_step_of_a_branch_runs_once_while_another_branch_asks():
    gathering, ran = Server("x"), list[str]()

    async def asks(ctx: AsyncContext) -> int:
        return await ctx.elicit("n", "?", int)

    async def works(ctx: AsyncContext) -> int:
        for name in ("first", "second"):
            await ctx.step(name, ran.append, name)
        return await asks(ctx)

    @gathering.tool
    async def both(ctx: AsyncContext) -> dict[str, int]:
        return await ctx.gather({"a": asks, "b": works})

    asked = Player(gathering, always_replay=True).call("both")
    assert (asked.asked.keys(), ran) == ({"a/n", "b/n"}, ["first", "second"])
    assert asked.answer(**{"a/n": 1, "b/n": 2}).structured == {"a": 1, "b": 2}
    assert ran == ["first", "second"]


def test_with_always_replay_a_step_runs_as_often_as_its_retry_allows():
    failing, attempts = Server("x"), list[float]()

    @failing.tool
    def look_up(ctx: Context) -> str:
        try:
            ctx.step("look up", look, retry=Retry(attempts=3, delay_ms=40_000))
        except StepFailed:
            return "nothing found"
        return "found"

    def look() -> None:
        attempts.append(play.clock())
        raise ConnectionError

    play = Player(failing, always_replay=True)
    assert play.call("look_up").text == "nothing found"
    assert [later - earlier >= 20 for earlier, later in pairwise(attempts)] == [True, True]


def test_notifications_are_those_of_every_round_that_a_step_of_the_test_played():
    reporting = Server("x")

    @reporting.tool
    def load(ctx: Context) -> bool:
        for number in (1, 2):
            ctx.step(f"load {number}", int)
            ctx.progress(number, 2)
        sure = ctx.confirm("sure", "Sure?")
        ctx.log("info", "done")
        return sure

    def heard(played: Round) -> list[object]:
        return [each["params"].get("progress", "log") for each in played.notifications]

    for always_replay in (False, True):  # with it, each step is a round
        play = Player(reporting, log_level="info", always_replay=always_replay)
        asked = play.call("load")
        assert heard(asked) == [1, 2]
        assert heard(asked.answer(sure=True)) == ["log"]
        assert heard(play.call("load", sure=True)) == [1, 2, "log"]


def test_random_values_are_those_of_a_given_generator():
    drawing = Server("x")

    @drawing.tool
    def draw(ctx: Context) -> str:
        return f"{ctx.uuid('id')} {ctx.random('share')}"

    def drawn(seed: int) -> str:
        return Player(drawing, ports={"random_bytes": Random(seed).randbytes}).call("draw").text

    assert drawn(7) == drawn(7) != drawn(8)


MODULE = """
from mcp_roundtrip import Context, Server
server = Server("module")
seen = []

@server.tool(task="optional")
def counts(ctx: Context) -> int:
    seen.append(1)
    ctx.run_as_task()
    ctx.elicit("q", "?", bool)
    return len(seen)
"""


def test_a_module_is_reloaded_for_every_round_and_for_every_worker(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(MODULE)
    assert Player(path).call("counts", q=True).structured == 1
    assert Player(path, WITH_TASKS).call("counts").task.answer(q=True).structured == 1


def test_an_answer_without_a_question_is_refused():
    done = Player(server).call("provision", {"name": "db"}, size=4, keep=True)
    with pytest.raises(AssertionError, match="nothing was asked"):
        done.answer(size=5)


PACKAGE = """
from domain.seen import NAME, SEEN
from mcp_roundtrip import Context, Server
server = Server("package")

@server.tool(name=NAME)
def counts(ctx: Context) -> str:
    import late, late_{0}
    SEEN.append(1)
    ctx.elicit("q", "?", bool)
    return f"{{late.NAME}} {{NAME}} {{late_{0}.NAME}} {{len(SEEN)}}"
"""


def test_functions_may_have_packages_of_one_name_and_import_modules_when_they_run(tmp_path):
    owners = {name: tmp_path / name / "app.py" for name in ("one", "two")}
    for name in owners:
        (tmp_path / name / "domain").mkdir(parents=True)
        (tmp_path / name / "app.py").write_text(PACKAGE.format(name))
        for late in ("late", f"late_{name}"):
            (tmp_path / name / f"{late}.py").write_text(f"NAME = {name!r}")
        (tmp_path / name / "domain/__init__.py").write_text("")
        (tmp_path / name / "domain/seen.py").write_text(f"NAME, SEEN = {name!r}, []")
    played = [Player(path).call(name, q=True).text for name, path in owners.items()]
    assert played == ["one one one 1", "two two two 1"]
    catalog = tmp_path / "catalog.json"
    catalog.write_text(json.dumps(catalog_of({name: load_server(path) for name, path in owners.items()})))
    behind = Player(FrontDoor("door", catalog), owners=owners)
    texts = [behind.call(name, q=True).text for name in owners]
    assert [text.split()[1:] for text in texts] == [text.split()[1:] for text in played]


def test_packages_that_are_installed_beside_a_function_are_imported_once(tmp_path):
    (tmp_path / "native").mkdir()
    (tmp_path / "native-1.0.dist-info").mkdir()
    (tmp_path / "native/__init__.py").write_text(
        "import sys; sys.imported_once = not hasattr(sys, 'imported_once')"
    )
    (tmp_path / "app.py").write_text(
        "import sys, native\nfrom mcp_roundtrip import Server\nserver = Server('built')\n"
        "@server.tool\ndef once() -> bool:\n    return sys.imported_once\n"
    )
    play = Player(tmp_path / "app.py")
    assert [play.call("once").structured for _ in range(2)] == [True, True]


FREEZE = """
import datetime
from mcp_roundtrip import Server
from mcp_roundtrip_testing import Player

def tomorrow() -> datetime.date:
    return datetime.date(2026, 7, 29)

server = Server("x")
real, datetime.date = datetime.date, type("Frozen", (datetime.date,), {})
server.tool(name="frozen")(lambda: None)
Player(server).call("frozen")
datetime.date = real
server.tool(tomorrow)
assert Player(server).call("tomorrow").structured == "2026-07-29"
"""


def test_a_frozen_clock_in_the_first_test_of_a_process_breaks_no_later_one():
    subprocess.run([sys.executable, "-c", FREEZE], check=True)
