"""What clients do with states: repeat, change, keep and share them; and what happens to the keys."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from corpus.aws_account import ARN, MAC_KEY, NEXT_SIGNING_KEY, SIGNING_KEY, private_key
from corpus.cases import asking
from corpus.cases.asking import TABLES, play
from corpus.client_kinds import KINDS
from corpus.conversation import Conversation, run, talk
from corpus.deployment import World
from corpus.deviations import DEVIATIONS
from corpus.pairs import Combination, all_pairs
from corpus.recording import Case

CLIENTS: Final = (
    *("shows forms and URLs", "answers everything, follows tasks"),
    *("claude.ai with forms, follows tasks", "2025-11-25 with tasks of SEP-2322"),
)
DIMENSIONS: Final[Mapping[str, Any]] = {
    "deviation": tuple(DEVIATIONS),
    "client": CLIENTS,
    "asks": ("form", "two forms", "url", "default"),
    "around": ("steps around", "another question after", "a task after", "a broken step after"),
    "feature": ("tool", "async tool", "prompt", "resource"),
    "task": (None, "optional"),
    "table": tuple(TABLES),
    "mode": ("none", "jwt"),
    "answer": ("accept", "decline"),
}


def is_possible(chosen: Combination) -> bool:
    kind = KINDS[chosen.get("client", "shows forms and URLs")]
    if kind.augments_tasks and chosen.get("feature") in ("prompt", "resource"):
        return False
    if not kind.is_legacy and not asking.is_asked(kind, chosen.get("asks")):
        return False
    deviation, changing = chosen.get("deviation", ""), ("form", "two forms")
    if "has changed" in deviation and chosen.get("asks", "form") not in changing:
        return False
    if "another caller" in deviation and chosen.get("mode") == "none":
        return False
    return asking.is_possible(chosen)


def cases() -> Iterator[Case]:
    for chosen in all_pairs(DIMENSIONS, is_possible):
        more = {**chosen, "channels": "usual channels", "source": "http_api"}
        task = "" if chosen["task"] is None else f", a task is {chosen['task']}"
        name = (
            f"state: client {chosen['client']} {chosen['deviation']}; {chosen['feature']} asks "
            f"{chosen['asks']} with {chosen['around']}{task}; {chosen['table']}; {chosen['mode']}; "
            f"answer: {chosen['answer']}"
        )
        yield Case(name, play, more)
    yield from _kept()
    yield from _keys()


def _kept() -> Iterator[Case]:
    for rounds in ("1", "2"):
        for task in (None, "optional"):
            for client in (
                "shows forms and URLs",
                "answers everything, follows tasks",
                "claude.ai with forms",
            ):
                settings = {"MCP_MAX_ROUNDS": rounds, **(TABLES["a table"] if task else {})}
                body = ("form", "step", "choice", "other step", "confirm")
                name = f"state: client {client}, at most {rounds} rounds{' or a task' if task else ''}"
                yield Case(name, run, body, client=client, task=task, settings=settings)
    yield Case("state: the flow expires", _expires)
    for seconds, settings in ((199, DELEGATED), (200, {})):
        name = f"state: a shorter limit of the flow after {500 + seconds} s"
        yield Case(name, _shorter, seconds, {"MCP_FLOW_TTL_S": "700"}, settings)
    yield Case("state: a shorter limit of a round", _shorter, 10, {"MCP_ROUND_TTL_S": "300"}, {})
    yield Case("state: rounds cross an epoch", _crosses)
    yield Case("state: a state of 70,000 characters", run, ("large step", "form"))
    for size in (15_000, 40_000):
        yield Case(f"state: a step of {size} characters", _large, size)
    yield Case("state: the answers of all rounds again", _all_answers)
    yield Case("state: three rounds, each in another environment", _environments)


def _expires(world: World) -> None:
    conversation = talk(world, "form", "choice", settings={"MCP_FLOW_TTL_S": "700"})
    response = conversation.call()
    for answers in (
        {"size": {"action": "accept", "content": {"vcpus": 2}}},
        {"color": {"action": "accept", "content": {"value": "red"}}},
    ):
        world.clock.sleep(400)
        state = response.get("result", {}).get("requestState", "")
        response = conversation.call(inputResponses=answers, requestState=state)


def _shorter(seconds: float, later: Mapping[str, str], settings: Mapping[str, str], world: World) -> None:
    """Lower a limit after 500 s, in the second round."""
    conversation = talk(world, "form", "choice", "confirm", settings=dict(settings))
    response = conversation.call()
    world.clock.sleep(500)
    response = conversation._react(response) or {}
    conversation.client.restart(**later)
    world.clock.sleep(seconds)
    conversation.go_on(response)


def _crosses(world: World) -> None:
    conversation = talk(world, "form", "choice", "confirm")
    world.clock.sleep(2_700)
    response = conversation.call()
    while "requestState" in response.get("result", {}):
        world.clock.sleep(500)
        response = conversation._react(response) or {}


def _large(size: int, world: World) -> None:
    world.notes["size"] = size
    talk(world, "sized step", "form").run()


def _all_answers(world: World) -> None:
    conversation = talk(world, "form", "step", "choice")
    size = {"size": {"action": "accept", "content": {"vcpus": 2}}}
    color = {"color": {"action": "accept", "content": {"value": "red"}}}
    conversation.call(inputResponses=size)
    conversation.call(inputResponses=size | color)
    state = conversation.call()["result"]["requestState"]
    state = conversation.call(inputResponses=size | color, requestState=state)["result"]["requestState"]
    conversation.call(inputResponses=color | size, requestState=state)


def _environments(world: World) -> None:
    conversation = talk(world, "form", "step", "choice", "other step", "confirm")
    response: dict[str, Any] | None = conversation.call()
    while response is not None:
        conversation.client.restart()
        response = conversation._react(response)


DELEGATED: Final = {"MCP_STATE_SIGNING": "delegated"}
UNENCRYPTED: Final = {"MCP_STATE_ENCRYPTION": "disabled", "MCP_STATE_ENCRYPTION_KEY_ARN": ""}

Change = Callable[[Conversation], None]


def _keys() -> Iterator[Case]:
    spki = private_key(1).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pinned = {"MCP_STATE_PUBLIC_KEYS": f"{SIGNING_KEY}:{b64encode(spki).decode()}"}
    deployments = {
        "direct": {},
        "delegated": DELEGATED,
        "unencrypted": UNENCRYPTED,
        "delegated, unencrypted": DELEGATED | UNENCRYPTED,
        "pinned keys": pinned,
        "another public key": {"MCP_STATE_PUBLIC_KEYS": f"other:{b64encode(spki).decode()}"},
    }
    for name, settings in deployments.items():
        yield Case(f"keys: {name}", _changed_between, settings, ())
        for change, changes in CHANGES.items():
            if name in ("delegated", "unencrypted"):
                yield Case(f"keys: {name}, then {change}", _changed_between, settings, changes)
    changes = (_new_environment(MCP_STATE_ENCRYPTION="enabled", MCP_STATE_ENCRYPTION_KEY_ARN=ARN + MAC_KEY),)
    yield Case("keys: unencrypted, then with encryption", _changed_between, UNENCRYPTED, changes)
    for operation in ("Sign", "GetPublicKey", "GenerateMac"):
        for code in ("ThrottlingException", "DisabledException", "AccessDeniedException", "no response"):
            yield Case(f"keys: {operation} fails with {code}", _kms_fails, {}, operation, code)
        code = "AccessDeniedException"
        yield Case(f"keys: delegated, {operation} fails", _kms_fails, DELEGATED, operation, code)
        name = f"keys: {operation} fails once with no response"
        yield Case(name, _kms_fails, {}, operation, "no response", times=1)
    for kind in ("direct", "delegated"):
        options: dict[str, Any] = {"mode": "jwt", "settings": deployments[kind]}
        yield Case(f"keys: {kind}, a signed link", run, ("signed link", "form"), **options)
    yield Case("keys: a signed link of an anonymous caller", run, ("signed link", "form"))


def _new_environment(**settings: str) -> Change:
    return lambda conversation: conversation.client.restart(**settings)


def _disable_key(conversation: Conversation) -> None:
    conversation.world.account.kms.DisableKey(KeyId=SIGNING_KEY)


CHANGES: Final[Mapping[str, tuple[Change, ...]]] = {
    "another environment": (_new_environment(),),
    "the next key": (
        _new_environment(
            MCP_STATE_KEY_ARN=ARN + NEXT_SIGNING_KEY, MCP_TRUSTED_STATE_KEY_ARNS=ARN + SIGNING_KEY
        ),
    ),
    "another key": (_new_environment(MCP_STATE_KEY_ARN=ARN + NEXT_SIGNING_KEY),),
    "another issuer": (_new_environment(MCP_ISSUER="other"),),
    "another audience": (_new_environment(MCP_AUDIENCE="https://other.example/mcp"),),
    "without encryption": (_new_environment(**UNENCRYPTED),),
    "a disabled signing key": (_disable_key,),
    "a long time in one environment": (lambda conversation: conversation.world.clock.sleep(590),),
}


def _changed_between(settings: Mapping[str, str], changes: tuple[Change, ...], world: World) -> None:
    """Run a round, change something, and run the others in the same environment."""
    conversation = talk(world, "form", "step", "choice", settings=settings)
    response = conversation.call()
    for change in changes:
        change(conversation)
    conversation.go_on(response)


def _kms_fails(settings: Mapping[str, str], operation: str, code: str, world: World, **options: Any) -> None:
    conversation = talk(world, "form", settings=settings)
    status = 0 if code == "no response" else 400
    world.account.fail("kms", operation, code, status, **options)
    conversation.run()
    world.account.recover()
    world.clock.sleep(30)
    conversation.run()
