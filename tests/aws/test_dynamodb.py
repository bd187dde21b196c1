import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.aws.dynamodb import (
    CONFLICT_ATTEMPTS,
    FIRST_CONFLICT_PAUSE_S,
    DynamoStore,
    Expressions,
)
from mcp_roundtrip.internal_errors import StoreError
from mcp_roundtrip.tasks.store_interface import Absent, AllOf, AnyOf, Change, Equals, Update
from mcp_roundtrip.tasks.transitions import claim
from support.aws_clients import KINDS
from support.dynamodb_clients import Wire, behind, client, new_table

pytest_plugins = ["support.ministack"]

ITEM = {"pk": "p", "sk": "M", "st": "working", "ver": 3}

COUNT = Change(Absent("n"), add={"n": 1})

READY = {"pk": "p", "sk": "M", "st": "working", "rn": "R", "ver": 1, "att": 0, "dead": 10_000}
CLAIM = claim(owner="me", delivery="request", until_ms=2_000, now_ms=1_000)


def fails_with(reason):
    return pytest.raises(StoreError, check=lambda failure: failure.reason == reason)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def dynamodb(ministack, kind):
    connected = client(ministack, kind=kind)
    yield connected
    connected.close()


@pytest.fixture
def table(dynamodb):
    return new_table(dynamodb)


@pytest.fixture
def store(dynamodb, table):
    return DynamoStore(dynamodb, table)


@pytest.fixture
def wire(ministack):
    return Wire(ministack)


@pytest.fixture
def store_losing_responses(wire, table, kind):
    """Return a store of the same table that sends its requests over `wire`."""
    with behind(wire, attempts=2, kind=kind) as dynamodb:
        yield DynamoStore(dynamodb, table)


def test_a_write_whose_response_was_lost_is_executed_once(wire, store_losing_responses, store):
    wire.lose = [print]
    assert store_losing_responses.put_new(ITEM) is None
    wire.lose = [print]
    assert store_losing_responses.update("p", "M", Change(Equals("ver", 3), add={"ver": 1}))["ver"] == 4
    wire.lose = [print]
    assert not store_losing_responses.put_new_and_update(ITEM | {"sk": "N"}, Update("p", "O", COUNT))
    assert wire.operations == ["PutItem"] * 2 + ["UpdateItem"] * 2 + ["TransactWriteItems"] * 2
    assert store.get("p", "M") == ITEM | {"ver": 4}
    assert (store.get("p", "N"), store.get("p", "O")["n"]) == (ITEM | {"sk": "N"}, 1)


def test_many_new_items_need_few_requests_also_if_a_response_was_lost(wire, store_losing_responses, store):
    items = [{"pk": "p", "sk": f"J#{number:03}"} for number in range(205)]
    wire.lose = [print]
    store_losing_responses.put_all_new(items)
    assert wire.operations == ["TransactWriteItems"] * 3 + ["PutItem"] * 5
    assert list(store.query("p")) == items


def test_many_new_items_are_written_one_by_one_if_their_transaction_is_throttled(
    wire, recording_store, store
):
    reasons = {"CancellationReasons": [{"Code": "ThrottlingError"}]}
    wire.refuse = [(400, "TransactionCanceledException", reasons)]
    recording_store.put_all_new([ITEM | {"sk": str(number)} for number in range(20)])
    assert wire.operations == ["TransactWriteItems"] + ["PutItem"] * 20


def test_an_equal_item_of_another_writer_is_a_failed_put(wire, store_losing_responses, store):
    store.put_new(ITEM)
    wire.lose = [print]
    assert store_losing_responses.put_new(ITEM) == ITEM


CONFLICT = {"CancellationReasons": [{"Code": "None"}, {"Code": "TransactionConflict"}]}


@pytest.fixture
def pauses():
    return []


@pytest.fixture
def recording_store(wire, table, pauses, kind):
    """Return a store of the same table over `wire` that records its pauses."""
    with behind(wire, kind=kind) as dynamodb:
        yield DynamoStore(dynamodb, table, pause_s=pauses.append)


def test_a_read_sees_every_write_before_it(wire, recording_store):
    """The emulators have no other reads, so this is about the requests."""
    recording_store.get("p", "M")
    recording_store.query("p")
    assert [(body["TableName"], body.get("ConsistentRead")) for body in wire.bodies] == [
        (recording_store.table_name, True)
    ] * 2


def test_a_transaction_that_conflicts_with_another_is_retried(wire, recording_store, pauses, store):
    wire.refuse = 3 * [(400, "TransactionCanceledException", CONFLICT)]
    assert not recording_store.put_new_and_update(ITEM, Update("p", "O", COUNT))
    assert store.get("p", "O")["n"] == 1
    assert len(pauses) == 3
    assert all(0 <= pause <= FIRST_CONFLICT_PAUSE_S * 2**n for n, pause in enumerate(pauses))


def test_a_write_that_conflicts_with_a_transaction_is_retried(wire, recording_store, pauses, store):
    wire.refuse = [(400, "TransactionConflictException")]
    assert recording_store.put_new(ITEM) is None
    wire.refuse = [(400, "TransactionConflictException")]
    assert recording_store.update("p", "M", Change(Equals("ver", 3), set={"st": "failed"}))["st"] == "failed"
    assert len(pauses) == 2


def test_a_persistent_conflict_is_a_store_error(wire, recording_store, pauses):
    wire.refuse = CONFLICT_ATTEMPTS * [(400, "TransactionCanceledException", CONFLICT)]
    with fails_with("TransactionConflict"):
        recording_store.put_new_and_update(ITEM, Update("p", "O", COUNT))
    assert len(wire.operations) == CONFLICT_ATTEMPTS == len(pauses) + 1


@pytest.mark.parametrize(
    ("code", "reason"), [("ThrottlingError", "ThrottlingError"), ("None", "ConditionalCheckFailedException")]
)
def test_a_transaction_cancelled_for_another_reason_is_a_store_error(
    wire, recording_store, pauses, store, code, reason
):
    reasons = [{"Code": "None"}, {"Code": code}]
    wire.refuse = [(400, "TransactionCanceledException", {"CancellationReasons": reasons})]
    with fails_with(reason):
        recording_store.put_new_and_update(ITEM, Update("p", "O", COUNT))
    assert (pauses, store.get("p", "M")) == ([], None)


def test_a_claim_whose_response_was_lost_succeeds(wire, store_losing_responses, store):
    store.put_new(READY)
    wire.lose = [print]
    claimed = store_losing_responses.update("p", "M", CLAIM)
    assert wire.operations == ["UpdateItem", "UpdateItem"]
    assert claimed == store.get("p", "M")
    assert (claimed["lo"], claimed["att"], claimed["ver"]) == ("me", 1, 2)


def test_an_equal_update_of_another_writer_is_a_failed_update(wire, store_losing_responses, store):
    store.put_new(READY)
    store.update("p", "M", CLAIM)
    wire.lose = [print]
    assert store_losing_responses.update("p", "M", CLAIM) is None
    assert store.get("p", "M")["att"] == 1


def test_a_repeated_update_of_a_deleted_item_fails(wire, store_losing_responses):
    wire.lose = [print]
    assert store_losing_responses.update("p", "M", CLAIM) is None


def test_a_failed_put_without_the_present_item_is_a_store_error(wire, store_losing_responses):
    wire.refuse = [(400, "ConditionalCheckFailedException")]
    with fails_with("ConditionalCheckFailedException"):
        store_losing_responses.put_new(ITEM)


OPERATIONS = {
    "put_new": lambda store: store.put_new(ITEM),
    "get": lambda store: store.get("p", "M"),
    "query": lambda store: store.query("p"),
    "update": lambda store: store.update("p", "M", Change(Equals("ver", 3), set={"st": "failed"})),
}


@pytest.fixture(params=OPERATIONS.values(), ids=list(OPERATIONS))
def operation(request):
    return request.param


REFUSALS = {
    "throttled": (400, "ProvisionedThroughputExceededException"),
    "denied": (400, "AccessDeniedException"),
    "failing": (500, "InternalServerError"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_store_error_has_the_aws_error_code(operation, refusal, kind):
    with behind(Wire(refuse=[refusal]), kind=kind) as dynamodb, fails_with(refusal[1]):
        operation(DynamoStore(dynamodb, "tasks"))


def test_a_store_error_contains_nothing_of_an_item(store, dynamodb):
    secret = {"pk": "secret", "sk": "secret", "secret": "very secret"}
    store.put_new(secret)
    for failing in (
        lambda: store.put_new(secret | {"sk": ""}),
        lambda: store.update("secret", "secret", Change(Equals("pk", "secret"), add={"secret": 1})),
        lambda: store.update("secret", "secret", Change(Equals("pk", "secret"), set={"pk": "secret"})),
        lambda: DynamoStore(dynamodb, "missing").put_new(secret),
    ):
        with pytest.raises(StoreError) as failed:
            failing()
        assert "secret" not in f"{failed.value!r} {failed.value.__cause__!r}"


# rules for expressions that no emulator enforces; tests/tasks checks what the expressions do

CONDITIONS = st.recursive(
    st.builds(Equals, st.sampled_from("ab"), st.integers(0, 1)),
    lambda inner: st.builds(
        lambda kind, parts: kind(tuple(parts)),
        st.sampled_from([AllOf, AnyOf]),
        st.lists(inner, min_size=1, max_size=3),
    ),
)


@given(CONDITIONS)
def test_no_parentheses_are_redundant(condition):
    expression = Expressions().build(Change(condition))["ConditionExpression"]
    opened: list[int] = []
    pairs = set()
    for at, character in enumerate(expression):
        if character == "(":
            opened.append(at)
        elif character == ")":
            pairs.add((opened.pop(), at))
    assert not any((start + 1, end - 1) in pairs for start, end in pairs)


@given(CONDITIONS, st.dictionaries(st.text(min_size=1), st.integers()), st.sets(st.sampled_from("xyz")))
def test_every_placeholder_is_defined_and_used(condition, values, removed):
    rendered = Expressions().build(Change(condition, set=values, remove=tuple(removed - values.keys())))
    text = f"{rendered['ConditionExpression']} {rendered.get('UpdateExpression', '')}"
    assert set(re.findall(r"#\d+", text)) == rendered["ExpressionAttributeNames"].keys()
    assert set(re.findall(r":\d+", text)) == rendered["ExpressionAttributeValues"].keys()


@pytest.mark.parametrize("name", ["status", "é", "a b", "a.b", "#0", ":0"])
def test_expressions_contain_only_placeholders_for_names_and_values(name):
    rendered = Expressions().build(Change(Equals(name, name), set={name: name}))
    assert re.fullmatch(r"[#:\d =]+", rendered["ConditionExpression"])
    assert re.fullmatch(r"SET [#:\d =]+", rendered["UpdateExpression"])
