"""Clients as their users install them, against template.yaml and against a server that finds their limits."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from mcp_roundtrip.protocol.constants import (
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_PROTOCOL_VERSION,
    TASKS_EXTENSION,
)
from mcp_roundtrip_testing.client_profile import ClientProfile
from mcp_roundtrip_tools.catalog.catalog import load_function_servers
from support.examples import HYDERABAD, ORDERS, RESOLVE, TOKYO
from support.page_user import LINK, answer_page, link_in
from support.project import FUNCTIONS, ROOT
from support.real_clients import FOLDER, Called, ClientProcess, RealClient, real_clients
from support.recorded_traffic import Exchange, Recorded, recorded

pytest_plugins = ["support.real_clients"]

ON_THE_PAGE = ("python-sdk", "inspector", "python-sdk-v1")
"""Clients without tasks, with tasks, and opened by `initialize`: a server sees no other difference."""

BY_TEXTS = ("python-sdk", "typescript-sdk-v1", "mcporter")
"""Clients without a session, with one, and with one for each call."""


def select(condition: Callable[[RealClient], Any]) -> pytest.MarkDecorator:
    """Run a test with the clients of the matrix that meet a condition."""
    found = [client for client in real_clients() if condition(client)]
    return pytest.mark.parametrize("client", found, indirect=True, ids=lambda client: client.id)


can_be_asked = select(lambda client: client.asks)


def with_profiles() -> pytest.MarkDecorator:
    """Run a test with each client that has a profile, and the option that the profile is about."""
    rows = [(client, *item) for client in real_clients() for item in client.profiles.items()]
    ids = [profile for _, _, profile in rows]
    return pytest.mark.parametrize(("client", "option", "profile"), rows, indirect=["client"], ids=ids)


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


@pytest.fixture(scope="module")
def examples():
    with recorded(ROOT / "template.yaml", user=True) as served:
        yield served


@pytest.fixture(scope="module")
def open_examples():
    """The examples for everyone, without signing in."""
    with recorded(ROOT / "template.yaml", AuthMode="none") as served:
        yield served


@pytest.fixture(scope="module")
def probe():
    with recorded(FOLDER / "probe/template.yaml") as served:
        yield served


@pytest.fixture(autouse=True)
def no_earlier_requests(request):
    for name in {"examples", "open_examples", "probe"} & {*request.fixturenames}:
        request.getfixturevalue(name).exchanges.clear()


def first_message(server: Recorded) -> Exchange:
    """Return the first message. The client of an earlier test may still ask for its stream, with GET."""
    return next(exchange for exchange in server.exchanges if exchange.body)


def test_it_opens_as_the_matrix_says_lists_every_tool_and_calls_one(client, process, examples):
    with process.connected(examples.url, tasks=client.tasks):
        listed = process.tools()
        called = process.call("get_weather", TOKYO)
    opening = first_message(examples)
    assert opening.method == client.opens_with
    params = opening.body["params"]
    if client.opens_with == "initialize":
        info, capabilities = params["clientInfo"], params["capabilities"]
    else:
        info, capabilities = (params["_meta"][key] for key in (META_CLIENT_INFO, META_CLIENT_CAPABILITIES))
        # `{}` declares forms only.
        modes = capabilities.get("elicitation", {"none": {}}) or {"form": {}}
        assert {*modes} == {*(client.asks or ["none"])}
    assert info["name"] == client.sends_name
    assert (TASKS_EXTENSION in capabilities.get("extensions", {})) == client.tasks
    assert {exchange.status for exchange in examples.exchanges if exchange.body} <= {200, 202}
    registered = {name for server in load_function_servers(FUNCTIONS).values() for name in server.tools}
    assert {tool["name"] for tool in listed} >= registered
    assert "tools/list" in examples.methods()
    assert (called.value["place"], called.asked) == ("Tokyo, Japan", ())
    assert examples.methods().count("tools/call") == 1


@with_profiles()
def test_its_profile_is_what_it_sends(client, process, examples, option, profile):
    with process.connected(examples.url, **{option: True}):
        process.tools()
    opening = first_message(examples)
    expected = ClientProfile.load(profile)
    params = opening.body["params"]
    meta = {} if expected.is_legacy else params["_meta"]
    assert opening.method == expected.opens_with
    assert expected.protocol_version == meta.get(META_PROTOCOL_VERSION, params.get("protocolVersion"))
    assert expected.client_info == meta.get(META_CLIENT_INFO, params.get("clientInfo"))
    assert expected.capabilities == meta.get(META_CLIENT_CAPABILITIES, params.get("capabilities"))


@can_be_asked
def test_the_user_answers_one_question_after_the_other_declines_or_cancels(client, process, examples):
    with process.connected(examples.url):
        declined, cancelled = (
            process.call("get_weather", HYDERABAD, {"action": action}) for action in ("decline", "cancel")
        )
        answers = (accept(resolution="Duplicate"), accept(duplicateOfId=4301))
        resolved = process.call("update_work_item", RESOLVE, *answers)
    assert "declined" in declined.error
    assert "dismissed" in cancelled.error
    assert resolved.text.startswith("Bug #4522 resolved as Duplicate of Bug #4301.")
    assert len(resolved.asked) == 2
    answered = [response for each in examples.calls() for response in answers_in(each)]
    assert [each["action"] for each in answered] == ["decline", "cancel", "accept", "accept"]
    assert len(examples.calls()) == 7


def answers_in(exchange: Exchange) -> Iterable[Mapping[str, Any]]:
    responses: Mapping[str, Mapping[str, Any]] = exchange.body["params"].get("inputResponses", {})
    return responses.values()


@select(lambda client: "url" in client.asks)
def test_the_user_visits_a_page(client, process, probe):
    url = "https://pay.example.com/orders/1"
    with process.connected(probe.url):
        called = process.call("visit", {"url": url}, {"action": "accept"})
    assert called.value == {"visited": url}
    assert [question["url"] for question in called.asked] == [url]


@select(lambda client: client.max_rounds != 0)
def test_it_gives_up_after_its_last_round_or_follows_every_one(client, process, probe):
    most = client.max_rounds or 15
    tool, answers = ("many_questions", [accept(value="x")] * (most + 1)) if client.asks else ("pauses", [])
    with process.connected(probe.url):
        enough = process.call(tool, {"count": most}, *answers[:most])
        assert len(*enough.value.values()) == most
        if client.max_rounds:
            more = process.call(tool, {"count": most + 1}, *answers)
            assert len(more.asked) == len(answers[:most])
            assert "rounds" in more.error


def test_it_follows_a_round_without_questions_if_the_matrix_says_so(client, process, probe):
    with process.connected(probe.url, asks=False):
        called = process.call("pauses", {"count": 1})
    if client.state_only_rounds:
        assert called.value == {"done": [1]}
    else:
        assert called.error
    assert probe.methods().count("tools/call") == 1 + client.state_only_rounds


@can_be_asked
def test_a_client_with_tasks_follows_one_and_others_get_the_same_result(client, process, examples):
    answers = [accept(value=value) for value in ("small", "eu-west-1", True)]
    with process.connected(examples.url, tasks=client.tasks):
        called = process.call("provision_database", ORDERS, *answers)
    assert called.value["price"] == "$26.28 a month"
    assert len(called.asked) == 3
    assert ("tasks/get" in examples.methods()) == client.tasks
    assert examples.methods().count("tasks/update") == client.tasks


@select(lambda client: client.id in ON_THE_PAGE)
def test_a_user_who_cannot_be_asked_answers_on_the_question_page(client, process, examples):
    arguments = {"name": f"orders-{client.id}"}  # the same call of another client would continue this one
    with process.connected(examples.url, asks=False, tasks=client.tasks):
        for answer in ("small", "eu-west-1", "Yes"):
            asked = process.call("provision_database", arguments)
            assert not asked.is_error
            answer_page(link_in(asked.text), answer)
        called, again = (process.call("provision_database", arguments) for _ in range(2))
    assert called.value["price"] == "$26.28 a month"
    assert called.value["host"].startswith(called.value["id"])
    assert again.text == called.text, "a lost response can be fetched again"
    assert len(examples.calls()) == 5
    assert ("tasks/get" in examples.methods()) == client.tasks


class TextReader:
    """Calls one tool, and calls it again as its results say.

    It knows what its client shows to a model: the listed schema of the tool, and the text of the results.
    """

    def __init__(self, client: ClientProcess, tool: str, arguments: Mapping[str, Any]) -> None:
        self.client, self.tool = client, tool
        [self.schema] = [each["inputSchema"] for each in client.tools() if each["name"] == tool]
        self.arguments = dict(arguments)
        self.result = client.call(tool, arguments)

    @property
    def link(self) -> str | None:
        """The link that the last text asks to show to the user."""
        found = LINK.search(self.result.text)
        return found[0] if found else None

    def call_again(self) -> Called:
        """Make the call that the last text asks for, as far as the listed schema allows it."""
        text = self.result.text
        assert f"call {self.tool} again with the same arguments" in text
        for name in self.schema["properties"]:
            if found := re.search(rf'{name} \\?"([^"\\]+)', text):
                self.arguments[name] = found[1]
        self.result = self.client.call(self.tool, self.arguments)
        return self.result


@select(lambda client: client.id in BY_TEXTS)
def test_without_signing_in_a_model_that_follows_the_texts_gets_the_answers_of_the_user(
    client, process, open_examples
):
    arguments = {"name": f"orders-{client.id}"}  # the same arguments of another client would be another call
    with process.connected(open_examples.url, asks=False, tasks=client.tasks):
        model = TextReader(process, "provision_database", arguments)
        for answer in ("small", "eu-west-1", "Yes"):
            assert model.link
            answer_page(model.link, answer)
            called = model.call_again()
    assert "$26.28 a month" in called.text
    assert model.link is None
    sessions = [each.headers.get("mcp-session-id") for each in open_examples.calls()]
    assert len(sessions) == 4
    assert len({*sessions}) == (4 if client.session_per_call and client.opens_with == "initialize" else 1)
    assert {each.headers.get("authorization") for each in open_examples.exchanges} == {None}


@select(lambda client: client.initialize)
def test_opened_with_initialize_it_returns_the_session_id(client, process, examples):
    with process.connected(examples.url, initialize=True):
        called = process.call("get_weather", TOKYO)
    assert called.value["place"] == "Tokyo, Japan"
    first, *later = (exchange for exchange in examples.exchanges if exchange.body)
    assert first.method == "initialize"
    assert {exchange.method for exchange in later} >= {"tools/call"}
    assert len({exchange.headers["mcp-session-id"] for exchange in later}) == 1
