"""Questions of tasks whose clients cannot show them: on the page, with the link in the result of the task."""

import pytest

from mcp_roundtrip import AsyncContext, Context, Server
from mcp_roundtrip.errors import StepInterrupted
from mcp_roundtrip.protocol.constants import TASKS_EXTENSION
from mcp_roundtrip.server.parked_replies import META_PARKED_CALL
from mcp_roundtrip.tasks.issued_requests import MAX_ASKED
from mcp_roundtrip.tasks.question_links import QuestionLinks
from mcp_roundtrip_testing import FakeClock
from mcp_roundtrip_testing.task_table import CrashingStore, TaskTable, WorkerKilled
from support.parked_deployment import TOKEN
from support.question_links import answer_link
from support.task_deployment import DECLARED, TaskDeployment, accepted

TASKS_ONLY = {"extensions": {TASKS_EXTENSION: {}}}
DECLINED = {"action": "decline"}

server = Server("tasks")
effects: list[str] = []
clocks: list[FakeClock] = []


def effect(name: str) -> str:
    effects.append(name)
    return name


@server.tool(task="required")
def provision(ctx: Context) -> str:
    """Create, ask twice, and finish."""
    ctx.run_as_task()
    ctx.step("create", effect, "created")
    size = ctx.elicit("size", "How large?", int)
    ctx.elicit("keep", "Keep it?", bool)
    return ctx.step("finish", effect, f"size {size}")


@server.tool(task="optional")
def rename(ctx: Context) -> str:
    """Ask for a name, as a task if the client supports tasks."""
    ctx.run_as_task()
    ctx.step("lock", effect, "locked")
    name = ctx.elicit("name", "Which name?", str)
    return ctx.step("rename", effect, name)


@server.tool(task="required", channels=("default",))
def defaults(ctx: Context) -> bool:
    """Ask with a default."""
    ctx.run_as_task()
    return ctx.elicit("keep", "Keep it?", bool, default=False)


@server.tool(task="optional")
def long(ctx: Context) -> str:
    """Ask first, and then take a minute."""
    ctx.elicit("go", "Begin?", bool)
    for number in range(6):
        ctx.step(f"part {number}", ten_seconds)
    return "6 parts"


def ten_seconds() -> str:
    clocks[-1].advance(10)
    return effect("part")


@server.tool(task="required")
async def naps(ctx: AsyncContext) -> str:
    """Ask while another branch naps again and again."""
    await ctx.run_as_task()

    async def nap(branch: AsyncContext) -> None:
        for number in range(1_000):
            await branch.sleep(f"nap {number}", 60_000)

    async def ask(branch: AsyncContext) -> int:
        return await branch.elicit("size", "How large?", int)

    await ctx.gather({"question": ask, "naps": nap})
    return "awake"


@server.tool(task="required")
def charge(ctx: Context) -> str:
    """Ask after a step that must not be repeated."""
    ctx.run_as_task()
    try:
        ctx.step("charge", effect, "charged", at_most_once=True)
    except StepInterrupted:
        ctx.elicit("charged", "Has the card been charged?", bool)
        return "checked"
    return "charged"


@pytest.fixture
def deployment():
    effects.clear()
    return TaskDeployment(server, capabilities=TASKS_ONLY)


def start(deployment, tool="provision"):
    task_id = deployment.start(tool)
    deployment.run_workers()
    return task_id


def ended(deployment, tool="provision"):
    """The result of a task that asks."""
    task = deployment.get(start(deployment, tool))["result"]
    assert task["status"] == "completed"
    return task["result"]


def text(result):
    [block] = result["content"]
    return block["text"]


def link(said):
    [token] = TOKEN.findall(said)
    return token


def links(deployment):
    return QuestionLinks(deployment.table.port().tasks)


def answer(deployment, result, **responses):
    return answer_link(links(deployment), link(text(result)), responses)


# -- a caller who has signed in -----------------------------------------------------------------------------


def test_the_task_ends_with_the_link_and_says_that_the_call_continues(deployment):
    result = ended(deployment)
    assert result["isError"] is False
    assert "call provision again with the same arguments" in text(result)
    status = result["_meta"][META_PARKED_CALL]
    assert status["status"] == "input_required"
    assert link(status["url"]) == link(text(result))
    assert links(deployment).find(link(text(result))).requests.keys() == {"size"}


def test_the_call_made_again_continues_as_a_task_and_repeats_no_step(deployment):
    assert answer(deployment, ended(deployment), size=accepted(3)) == "stored"
    second = ended(deployment)
    assert links(deployment).find(link(text(second))).requests.keys() == {"keep"}
    assert answer(deployment, second, keep=accepted(True)) == "stored"
    assert text(ended(deployment)) == "size 3"
    assert effects == ["created", "size 3"]


def test_the_call_made_again_before_the_answer_returns_the_same_link(deployment):
    result = ended(deployment)
    again = deployment.call("provision")["result"]
    assert again["resultType"] == "complete"
    assert link(text(again)) == link(text(result))
    assert effects == ["created"]


def test_a_client_without_tasks_continues_in_requests(deployment):
    assert answer(deployment, ended(deployment, "rename"), name=accepted("new")) == "stored"
    assert text(deployment.call("rename", capabilities={})["result"]) == "new"
    assert effects == ["locked", "new"]


def test_a_parked_call_that_runs_out_of_time_becomes_a_task(deployment):
    asked = deployment.call("long")["result"]
    assert answer(deployment, asked, go=accepted(True)) == "stored"
    clocks.append(deployment.clock)
    assert text(ended(deployment, "long")) == "6 parts"
    assert effects == ["part"] * 6


def test_a_declined_question_ends_the_next_task_with_an_error_for_the_model(deployment):
    answer(deployment, ended(deployment), size=DECLINED)
    assert ended(deployment)["isError"] is True


def test_another_user_does_not_continue_the_call(deployment):
    answer(deployment, ended(deployment), size=accepted(3))
    deployment.user = "mallory"
    assert links(deployment).find(link(text(ended(deployment)))).requests.keys() == {"size"}
    assert effects == ["created", "created"]


def test_of_two_equal_calls_one_is_parked_and_both_return_its_link(deployment):
    one, other = deployment.start("provision"), deployment.start("provision")
    deployment.run_workers()
    results = [deployment.get(task_id)["result"]["result"] for task_id in (one, other)]
    assert len({link(text(result)) for result in results}) == 1
    answer(deployment, results[0], size=accepted(3))
    answer(deployment, ended(deployment), keep=accepted(True))
    assert text(ended(deployment)) == "size 3"
    assert effects == ["created", "created", "size 3"]


def test_a_cancelled_task_is_not_parked(deployment):
    task_id = deployment.start("provision")
    deployment.run_worker(CancellingStore(deployment, task_id))
    assert deployment.status(task_id) == "cancelled"
    assert deployment.call("provision")["result"]["resultType"] == "task"


class DyingStore(CrashingStore):
    """Kills its worker before it writes the item with this sort key."""

    def __init__(self, store, sort_key):
        super().__init__(store, 10**9, is_done=False)
        self._sort_key = sort_key

    def put_new_and_update(self, item, *updates):
        if item["sk"] == self._sort_key:
            self.killed_call = self.calls
        return super().put_new_and_update(item, *updates)


class CancellingStore(CrashingStore):
    """Cancels the task before the transaction that would park it."""

    def __init__(self, deployment, task_id):
        super().__init__(deployment.store, 10**9, is_done=False)
        self._cancel = lambda: deployment.cancel(task_id)

    def put_new_and_update(self, item, *updates):
        self._cancel()
        return super().put_new_and_update(item, *updates)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_crash_at_any_call_of_the_table_repeats_no_step_and_loses_no_answer(is_done):
    crashes = []
    for killed_call in range(200):
        effects.clear()
        deployment = TaskDeployment(server, capabilities=TASKS_ONLY)
        deployment.table = TaskTable(deployment.clock, deployment.store, max_open=2)
        crashing = CrashingStore(deployment.store, killed_call, is_done)
        assert text(survive(deployment, crashing)) == "size 3"
        assert effects.count("size 3") <= 1 + ("J#finish" in crashing.killed_at)
        assert effects.count("created") <= 1 + ("J#create" in crashing.killed_at)
        if not crashing.is_dead:
            break
        crashes.append(crashing.killed_at)
    assert sum(each.startswith("put_new_and_update") for each in crashes) >= 4
    assert not crashing.is_dead


def survive(deployment, crashing):
    """Carry out the call; the process that uses the crashing store dies once, and others continue."""
    answers = {"size": accepted(3), "keep": accepted(True)}
    for _ in range(40):
        result = attempt(deployment, crashing)
        if result is None:
            continue
        found = TOKEN.findall(text(result))
        if not found:
            return result
        asked = links(deployment).find(found[0]).requests
        answer_link(links(deployment), found[0], {key: answers[key] for key in asked})
    raise AssertionError("the call does not end")


def attempt(deployment, crashing):
    """Call the tool and follow its task; return the result, or None if a process died before the response."""
    used = None if crashing.is_dead else crashing
    try:
        result = deployment.post("tools/call", name="provision", arguments={}, store=used)["result"]
    except WorkerKilled:
        deployment.clock.advance(40)
        return None
    if result["resultType"] != "task":
        return result if TOKEN.search(text(result)) or "size" in text(result) else wait(deployment)
    for _ in range(10):
        while deployment.table.dispatcher.sent:
            try:
                deployment.run_worker(None if crashing.is_dead else crashing)
            except WorkerKilled:
                deployment.clock.advance(1_000)
        task = deployment.get(result["taskId"])["result"]
        if task["status"] != "working":
            return task["result"]
        deployment.clock.advance(1_000)
    raise AssertionError("the task does not end")


def wait(deployment):
    deployment.clock.advance(40)


def test_a_step_that_must_not_be_repeated_is_not(deployment):
    task_id = deployment.start("charge")
    # The worker dies after the step, before its result is stored.
    with pytest.raises(WorkerKilled):
        deployment.run_worker(DyingStore(deployment.store, "J#charge"))
    assert effects == ["charged"]
    deployment.clock.advance(1_000)
    deployment.status(task_id)
    deployment.run_workers()
    result = deployment.get(task_id)["result"]["result"]
    answer(deployment, result, charged=accepted(True))
    assert text(ended(deployment, "charge")) == "checked"
    assert effects == ["charged"]


def test_the_call_takes_the_place_of_its_task_among_the_open_ones(deployment):
    deployment.table = TaskTable(deployment.clock, deployment.store, max_open=1)
    answer(deployment, ended(deployment), size=accepted(3))
    answer(deployment, ended(deployment), keep=accepted(True))
    assert text(ended(deployment)) == "size 3"


# -- answers that are refused -------------------------------------------------------------------------------


def refused_answers(ask, is_error):
    """Refuse answers until the call ends, and return how often it asked."""
    for asked in range(1, 100):
        if is_error(result := ask()):
            return asked - 1, result
    raise AssertionError("the call asks without an end")


def test_a_question_on_the_page_is_asked_twenty_times_over_all_tasks_of_the_call(deployment):
    def ask():
        result = ended(deployment)
        if not result["isError"]:
            answer(deployment, result, size=accepted("large"))
        return result

    asked, result = refused_answers(ask, lambda result: result["isError"])
    assert asked == MAX_ASKED
    assert "'size'" in text(result)
    assert effects == ["created"]


def test_a_question_of_a_task_is_asked_twenty_times(deployment):
    deployment.capabilities = DECLARED
    task_id = start(deployment)

    def ask():
        task = deployment.get(task_id)["result"]
        if task["status"] == "input_required":
            deployment.update(task_id, **dict.fromkeys(task["inputRequests"], accepted("large")))
            deployment.run_workers()
        return task

    asked, task = refused_answers(ask, lambda task: task["status"] != "input_required")
    assert asked == MAX_ASKED
    assert task["result"]["isError"] is True
    assert "'size'" in text(task["result"])


def test_an_open_question_is_not_asked_again_when_another_branch_wakes(deployment):
    deployment.capabilities = DECLARED
    task_id = start(deployment, "naps")
    for _ in range(MAX_ASKED - 1):
        asked = deployment.get(task_id)["result"]["inputRequests"]
        deployment.update(task_id, **dict.fromkeys(asked, accepted("large")))
        deployment.run_workers()
    for _ in range(3):
        deployment.clock.advance(60)
        assert deployment.status(task_id) == "input_required"
        deployment.run_workers()


# -- a caller without an identity ---------------------------------------------------------------------------


@pytest.fixture
def anonymous(deployment):
    deployment.user = None
    return deployment


def status_link(deployment, task_id):
    return link(deployment.get(task_id)["result"]["statusMessage"])


def test_the_task_of_an_anonymous_caller_stays_working_and_its_status_message_has_the_link(anonymous):
    task = anonymous.get(start(anonymous))["result"]
    assert task["status"] == "working"
    assert "inputRequests" not in task
    assert links(anonymous).find(link(task["statusMessage"])).requests.keys() == {"size"}


def test_an_answer_on_the_page_dispatches_the_worker_and_the_task_ends(anonymous):
    task_id = start(anonymous)
    first = status_link(anonymous, task_id)
    assert answer_link(links(anonymous), first, {"size": accepted(3)}) == "stored"
    assert "statusMessage" not in anonymous.get(task_id)["result"]
    anonymous.run_workers()
    second = status_link(anonymous, task_id)
    assert second != first
    assert answer_link(links(anonymous), second, {"keep": accepted(True)}) == "stored"
    anonymous.run_workers()
    task = anonymous.get(task_id)["result"]
    assert (task["status"], text(task["result"])) == ("completed", "size 3")
    assert effects == ["created", "size 3"]


def test_the_client_cannot_answer_what_the_page_asks(anonymous):
    task_id = start(anonymous)
    anonymous.update(task_id, size=accepted(3))
    assert not anonymous.table.dispatcher.sent
    assert links(anonymous).find(status_link(anonymous, task_id)).state == "open"


def test_the_link_ends_with_the_task(anonymous):
    task_id = start(anonymous)
    token = status_link(anonymous, task_id)
    anonymous.cancel(task_id)
    assert answer_link(links(anonymous), token, {"size": accepted(3)}) == "ended"
    assert anonymous.status(task_id) == "cancelled"


# -- other ways ---------------------------------------------------------------------------------------------


def test_a_client_that_can_be_asked_is_asked_by_the_protocol(deployment):
    deployment.capabilities = DECLARED
    task = deployment.get(start(deployment))["result"]
    assert task["status"] == "input_required"
    assert task["inputRequests"].keys() == {"size"}
    assert "statusMessage" not in task


def test_without_the_channel_a_question_takes_its_default(deployment):
    assert ended(deployment, "defaults")["structuredContent"] in (False, {"result": False})
