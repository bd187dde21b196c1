import json
import os
import re
from contextlib import closing

import pytest

from mcp_roundtrip_testing import Player, Round
from mcp_roundtrip_testing.execution_environments import load_server
from mcp_roundtrip_testing.serving import json_response
from mcp_roundtrip_tools.run.http.messages import Response
from mcp_roundtrip_tools.run.http.server import HttpServer
from support.aws_clients import FUNCTION
from support.example_services import stand_in
from support.project import FUNCTIONS

APP = FUNCTIONS / "work_items/app.py"
HEADINGS = [
    "Bug #4301: Sign-in loops when the session cookie has expired",
    "Task #4410: Move the nightly build to the new agents",
    "User Story #4476: Save a search and be notified of new results",
    "Bug #4522: Endless redirect after the laptop was asleep",
    "Bug #4530: Date picker starts the week on the wrong day",
]
DUPLICATE = {"resolution": "Duplicate"}


@pytest.fixture(autouse=True)
def requests():
    """Yield the requests to Azure DevOps. Each test has a separate project."""
    with stand_in("azure_devops", "AZURE_DEVOPS_URL") as service:
        yield service.requests


@pytest.fixture
def play():
    return Player(APP, always_replay=True)


def test_a_resolved_duplicate_has_its_fields_and_one_link(requests):
    play = Player(APP)
    for _ in range(2):
        before = len(requests)
        asked = resolve(play).answer(resolution=DUPLICATE)
        assert asked.asked.keys() == {"duplicate_of"}
        methods = [request.method for request in requests[before:]]
        assert set(methods) == {"GET"}, "the item is updated only after the last answer"
        done = asked.answer(duplicate_of={"duplicateOfId": 4301})
        assert re.search("Duplicate of Bug #4301.*link created", done.text)
        assert changes(done) == {"State": "Resolved"}
    url = os.environ["AZURE_DEVOPS_URL"]
    set_fields = [
        {"op": "add", "path": "/fields/System.State", "value": "Resolved"},
        {"op": "add", "path": "/fields/Custom.Resolution", "value": "Duplicate"},
    ]
    relation = {"rel": "System.LinkTypes.Duplicate-Reverse", "url": f"{url}/_apis/wit/workItems/4301"}
    patches = [request for request in requests if request.method == "PATCH"]
    assert [json.loads(patch.body) for patch in patches] == [
        [*set_fields, {"op": "add", "path": "/relations/-", "value": relation}],
        set_fields,
    ]
    assert {patch.header("content-type") for patch in patches} == {"application/json-patch+json"}


def changes(done: Round) -> dict[str, str]:
    return dict(re.findall(r"(\w+) set to (\w+)", done.text))


def resolve(play: Player, number: int = 4522, **fields: str) -> Round:
    return play.call(
        "update_work_item", {"workItemId": number, "fields": {"System.State": "Resolved", **fields}}
    )


@pytest.mark.parametrize(
    ("resolution", "fields", "reported"),
    [
        ("Fixed", {"System.Title": "Loop"}, {"State": "Resolved", "Title": "Loop"}),
        ("Won't Fix", {}, {"State": "Resolved"}),
        ("By Design", {}, {"State": "Resolved"}),
    ],
)
def test_any_other_resolution_is_reported_with_every_changed_field(play, resolution, fields, reported):
    done = resolve(play, **fields).answer(resolution={"resolution": resolution})
    assert f" as {resolution}. " in done.text
    assert changes(done) == reported


def test_other_fields_are_set_without_a_question(play):
    fields = {"System.State": "Active", "System.Title": "Loop"}
    done = play.call("update_work_item", {"workItemId": 4410, "fields": fields})
    assert changes(done) == {"State": "Active", "Title": "Loop"}


@pytest.mark.parametrize(
    ("number", "fields", "reason"),
    [
        (1, {"System.State": "Resolved"}, "#1."),
        (4410, {"System.State": "Resolved"}, "not a bug"),
        (4522, {}, "one field"),
        (4522, {"System.Title": "A title", "System.Reason": "Because"}, "'System.Reason'"),
        (4522, {"System.State": "Lost"}, "Resolved, Closed"),
        (4522, {"System.State": 1}, "arguments.fields.System.State"),
        ("bug", {"System.State": "Active"}, "arguments.workItemId"),
    ],
)
def test_a_failed_update_is_a_tool_error(play, number, fields, reason):
    failed = play.call("update_work_item", {"workItemId": number, "fields": fields})
    assert failed.failed
    assert reason in failed.text


@pytest.mark.parametrize(("original", "named"), [(4522, "itself"), (4410, "Task"), (1, "#1")])
def test_an_original_other_than_another_bug_is_a_tool_error(play, original, named):
    done = resolve(play).answer(resolution=DUPLICATE).answer(duplicate_of={"duplicateOfId": original})
    assert done.failed
    assert named in done.text


def test_a_client_without_elicitation_gets_the_missing_capability_only_if_a_rule_applies():
    play = Player(APP, capabilities={"sampling": {}}, ports={"tasks": None})
    assert resolve(play).error["code"] == -32021
    assert not play.call("update_work_item", {"workItemId": 4522, "fields": {"System.State": "New"}}).failed


def test_without_a_project_the_operator_is_told_what_to_set(play, monkeypatch):
    monkeypatch.setenv("AZURE_DEVOPS_URL", "")
    refused = resolve(play)
    assert (refused.failed, "AZURE_DEVOPS_URL" in refused.text) == (True, True)


def test_a_final_slash_of_the_project_makes_no_difference(play, requests, monkeypatch):
    monkeypatch.setenv("AZURE_DEVOPS_URL", os.environ["AZURE_DEVOPS_URL"] + "/")
    assert not resolve(play).failed
    assert all(request.target.startswith("/_apis/") for request in requests)


@pytest.fixture
def secrets(monkeypatch):
    """Yield the responses of AWS Secrets Manager."""
    responses: list[Response] = []
    with closing(HttpServer(lambda _: responses.pop()).start()) as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", server.url)
        monkeypatch.setenv("AZURE_DEVOPS_SECRET", "tools/azure-devops")
        for name, value in FUNCTION.items():
            monkeypatch.setenv(name, value)
        yield responses


def test_requests_carry_the_token_of_the_secret_and_after_it_was_replaced_the_new_one(secrets):
    secrets += [json_response(200, {"SecretString": token}) for token in ("new", "a-token")]
    play = Player(load_server(APP))  # which is loaded once, as the secret
    with stand_in("azure_devops", "AZURE_DEVOPS_URL") as service:
        first = resolve(play)
        service.failures.append(Response(401))
        assert [first.failed, resolve(play).failed, resolve(play).failed] == [False, True, False]
    tokens = dict.fromkeys(request.header("authorization") for request in service.requests)
    assert [*tokens] == ["Basic OmEtdG9rZW4=", "Basic Om5ldw=="]


@pytest.mark.parametrize("reason", ["ResourceNotFoundException", "AccessDeniedException"])
def test_without_the_secret_the_operator_is_told_what_to_create(secrets, reason):
    secrets.append(json_response(400, {"__type": reason}))
    refused = resolve(Player(APP))
    assert (refused.failed, "AZURE_DEVOPS_SECRET" in refused.text) == (True, True)


def said(played: Round) -> str:
    [message] = played.messages
    assert message["role"] == "user"
    return str(message["content"]["text"])


def test_a_triage_describes_the_given_work_item(play):
    text = said(play.prompt("triage", {"workItemId": "4522"}))
    assert text.startswith(f"Triage {HEADINGS[3]} (Active)")
    assert text.count("#4522") == 1
    assert all(heading in text for heading in HEADINGS)


def test_a_triage_without_a_work_item_asks_for_one_of_the_unresolved(play):
    asked = play.prompt("triage", {"workItemId": ""})  # as hosts send a field that was left empty
    form = asked.asked["work_item"]["params"]["requestedSchema"]
    assert form["properties"]["value"]["enum"] == HEADINGS
    for heading in HEADINGS:
        assert said(asked.answer(work_item=heading)) == said(
            play.prompt("triage", {"workItemId": heading.partition("#")[2][:4]})
        )


@pytest.mark.parametrize("given", ["1", "first", "4522.5"])
def test_a_triage_of_an_unknown_or_invalid_id_is_invalid_params(play, given):
    assert play.prompt("triage", {"workItemId": given}).error["code"] == -32602


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("43", ["4301"]), ("45", ["4522", "4530"]), ("41", []), ("", ["4301", "4410", "4476", "4522", "4530"])],
)
def test_ids_are_completed(play, typed, offered):
    asked = {
        "ref": {"type": "ref/prompt", "name": "triage"},
        "argument": {"name": "workItemId", "value": typed},
    }
    assert play.request("completion/complete", **asked)["result"]["completion"]["values"] == offered
