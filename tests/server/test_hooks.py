"""Hooks run around every pass: in rounds, replays, workers and parked calls, and for every client."""

import json
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from functools import partial

import pytest

from mcp_roundtrip import AsyncContext, Call, Context, Server, ToolError, UsageError
from mcp_roundtrip.observing.logs_and_metrics import LogObserver
from mcp_roundtrip_testing import WITH_TASKS, Player
from support.audit_lines import AuditLines
from support.deployment import legacy
from support.task_tools import ran

seen = []
"""What hooks have seen."""

CLOSED = ToolError("The shop is closed.")


@pytest.fixture(autouse=True)
def nothing_seen():
    seen.clear()


def shop(*hooks):
    """Return a server with a feature of each kind and these hooks."""
    server = Server("shop")
    for hook in hooks:
        server.around(hook)

    @server.tool
    def order(ctx: Context, item: str = "tea") -> str:
        ran.append("order")
        if not ctx.confirm("sure", f"Order {item}?"):
            return "nothing"
        return ctx.step("pay", lambda: f"paid {item}")

    @server.tool(task="required")
    def export(ctx: Context) -> str:
        ran.append("export")
        ctx.run_as_task()
        return ctx.step("write", lambda: "written")

    @server.tool
    def fail(text: str) -> str:
        ran.append("fail")
        raise ToolError(text) if text else RuntimeError

    @server.tool
    async def order_later(ctx: AsyncContext) -> str:
        ran.append("order_later")
        return str(await ctx.confirm("sure", "Order?"))

    @server.prompt
    def letter(name: str) -> str:
        ran.append("letter")
        return f"Dear {name}"

    @server.resource("orders://{number}")
    def saved(number: str) -> str:
        ran.append("saved")
        return number

    return server


def recording(read=lambda call: call.outcome):
    """Return a hook that records what `read` returns at the end of each pass."""

    def record(call: Call) -> Iterator[None]:
        yield
        seen.append(read(call))

    return record


def refusing(error):
    """Return a hook that raises this error before each pass."""

    def refuse(call: Call) -> Iterator[None]:
        raise error
        yield

    return refuse


def test_a_hook_runs_in_the_request_of_a_task_and_in_its_worker():
    server = shop(recording(lambda call: (call.outcome, call.task_id, call.scopes)))
    task = Player(server, WITH_TASKS).call("export").task
    assert task.status == "completed"
    assert seen == [("task", None, frozenset()), ("complete", task.task_id, None)]


def test_a_hook_runs_around_prompts_and_resources_and_sees_the_client():
    player = Player(shop(recording(lambda call: (call.kind, call.name, call.arguments, call.client))))
    player.prompt("letter", {"name": "Ada"})
    player.read("orders://7")
    client = {"name": "mcp-roundtrip-testing", "version": "1"}
    assert seen == [
        ("prompt", "letter", {"name": "Ada"}, client),
        ("resource", "orders://{number}", {"number": "7"}, client),
    ]


def test_a_hook_runs_for_clients_that_open_with_initialize_and_sees_the_caller():
    read = recording(lambda call: (call.protocol_version, call.outcome, call.principal.subject, call.scopes))
    legacy(shop(read), user="ada").call("fail", text="no luck")
    assert seen == [("2025-11-25", "tool_error", "ada", frozenset())]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("fail", {"text": "no luck"}, ("tool_error", "ToolError")),
        ("fail", {"text": ""}, ("raised", "RuntimeError")),
        ("fail", {}, ("arguments_refused", "ArgumentsError")),
        ("order", {}, ("input_required", None)),
    ],
)
def test_after_its_yield_a_hook_knows_the_outcome_and_the_type_of_the_error(tool, arguments, expected):
    def look(call: Call) -> Iterator[None]:
        seen.append((call.outcome, call.error_type))
        yield
        seen.append((call.outcome, call.error_type))

    Player(shop(look)).send(tool, arguments, None, None)
    assert seen == [(None, None), expected]


def forgets_to_yield(call: Call) -> Iterator[None]:
    if call.name != "order":
        yield


@pytest.mark.parametrize(
    ("hook", "kind"),
    [
        (refusing(OSError("no policy")), OSError),
        (refusing(SystemExit()), SystemExit),
        (forgets_to_yield, UsageError),
    ],
    ids=["OSError", "SystemExit", "no yield"],
)
def test_an_unexpected_exception_of_a_hook_refuses_the_call_and_is_logged(hook, kind):
    player = Player(shop(hook))
    played = player.send("order", {}, None, None)
    assert played.result["isError"] is True
    assert "policy" not in json.dumps(played.message)
    assert [(event, type(error)) for event, error in player.observer.failures] == [("tool_raised", kind)]
    assert ran == []


def test_the_first_registered_hook_is_the_outermost_also_around_features_that_follow():
    def hook(name: str, call: Call) -> Iterator[None]:
        seen.append(f"{name} begins")
        try:
            yield
        finally:
            seen.append(f"{name} ends, {call.error_type}")

    server = shop(partial(hook, "a"), partial(hook, "b"))
    server.tool("late")(lambda: seen.append("tool"))
    Player(server).call("late")
    assert seen == ["a begins", "b begins", "tool", "b ends, None", "a ends, None"]
    seen.clear()
    Player(server).call("order")
    assert seen[2:] == ["b ends, None", "a ends, None"], "also when a round suspends"
    seen.clear()
    Player(shop(partial(hook, "a"), refusing(CLOSED), partial(hook, "b"))).read("orders://7")
    assert (seen, ran) == (["a begins", "a ends, ToolError"], ["order"])


def test_a_hook_cannot_change_the_call():
    def meddle(call: Call) -> Iterator[None]:
        call.arguments["item"] = "gin"
        for name in ("name", "principal", "outcome", "result"):
            with pytest.raises(AttributeError):
                setattr(call, name, "changed")
        yield

    asked = Player(shop(meddle)).call("order", {"item": "tea"})
    assert "Order tea?" in str(asked.asked["sure"])


def test_a_hook_sees_neither_headers_nor_answers_nor_results():
    members = {name for name in vars(Call) if not name.startswith("_")}
    assert members == {
        *("kind", "name", "method", "arguments", "principal", "scopes", "client", "protocol_version"),
        *("flow_id", "task_id", "is_first_pass", "remaining_ms", "correlation_id"),
        *("outcome", "error_type", "add_fields"),
    }


tenant = ContextVar("tenant", default="nobody's")


def plain_tenant(call: Call) -> Iterator[None]:
    token = tenant.set(f"{call.arguments['user']}'s")
    yield
    tenant.reset(token)


async def async_tenant(call: Call) -> AsyncIterator[None]:
    token = tenant.set(f"{call.arguments['user']}'s")
    yield
    tenant.reset(token)


@pytest.mark.parametrize("hook", [plain_tenant, async_tenant])
def test_tools_see_the_context_variables_of_hooks_for_one_pass(hook):
    server = Server("tenants")
    server.around(hook)

    @server.tool
    async def later(user: str) -> str:
        return at_once(user)

    @server.tool
    def at_once(user: str) -> str:
        seen = tenant.get()
        tenant.set("eve's")
        return seen

    player = Player(server)
    for tool in ("later", "at_once"):
        assert [player.call(tool, {"user": user}).text for user in ("ada", "bob")] == ["ada's", "bob's"]
    assert player.observer.failures == []
    server.hooks.clear()
    token = tenant.set("the handler's")
    seen = [player.call(tool, {"user": "eve"}).text for tool in ("later", "at_once") * 2]
    tenant.reset(token)
    assert seen == ["the handler's"] * 4


@pytest.mark.parametrize("error", [CLOSED, SystemExit()], ids=["ToolError", "SystemExit"])
def test_an_async_hook_refuses_and_the_next_call_runs(error):
    is_closed = [True]

    async def closes(call: Call) -> AsyncIterator[None]:
        if is_closed.pop():
            raise error
        yield

    server = shop(closes)
    refused = Player(server).send("order_later", {}, None, None)
    assert refused.result["isError"] is True
    assert (str(CLOSED) in json.dumps(refused.message)) is (error is CLOSED)
    is_closed.append(False)
    assert "sure" in Player(server).send("order_later", {}, None, None).asked


def test_exceptions_of_hooks_are_redacted_in_the_log(capsys):
    def leaky(call: Call) -> Iterator[None]:
        if call.is_first_pass:
            yield
        raise LookupError(call.arguments["item"])

    secret, observer = "argument-4711", LogObserver()
    observer.begin("request-1")
    asked = Player(shop(leaky), observer=observer).call("order", {"item": secret})
    observer.begin("request-2")
    assert asked.answer(sure=True).result["isError"] is True
    printed = capsys.readouterr().out
    assert printed.count("LookupError: [redacted]") == 2
    assert secret not in printed


def adding(**fields):
    """Return a hook that adds these fields, and records the errors of that."""

    def add(call: Call) -> Iterator[None]:
        try:
            call.add_fields(**fields)
        except UsageError as error:
            seen.append(error)
        yield

    return add


def test_the_audit_record_begins_before_the_hooks():
    audited = AuditLines()

    def look(call: Call) -> Iterator[None]:
        seen.extend(audited.phases)
        yield

    Player(shop(look), ports={"audit": audited.log}).read("orders://7")
    assert seen == ["begun"]


WRONG_FIELDS = {
    "upper case": {"Tenant": "a"},
    "empty": {"": "a"},
    "long": {"a" * 41: "a"},
    "None": {"tenant": None},
    "object": {"tenant": {"id": 1}},
    "nan": {"ratio": float("nan")},
    "large": {"size": 2**63},
    "many": {f"field_{number}": 1 for number in range(17)},
}


@pytest.mark.parametrize("fields", WRONG_FIELDS.values(), ids=WRONG_FIELDS)
def test_a_field_that_no_log_can_hold_is_an_error_of_the_hook_and_a_long_text_is_cut(fields):
    player = Player(shop(adding(**fields)))
    player.read("orders://7")
    assert len(seen) == 1
    assert "fields" not in player.observer.tags
    most = {"size": 3, "ratio": 0.5, "beta": True, **dict.fromkeys(map("field_{}".format, range(12)), 1)}
    player = Player(shop(adding(tenant="replaced", **most), adding(tenant="é" * 300)))
    player.read("orders://7")
    assert player.observer.tags["fields"] == {"tenant": "é" * 256, **most}
    assert len(seen) == 1


class Quota:
    """A hook with state."""

    def __init__(self, limit):
        self.left = limit

    def __call__(self, call: Call) -> Iterator[None]:
        self.left -= 1
        yield


def test_an_instance_and_a_bound_method_are_hooks():
    server, quota = shop(), Quota(3)
    assert server.around(quota) is quota
    server.around(Quota(3).__call__)
    Player(server).read("orders://7")
    assert quota.left == 2
