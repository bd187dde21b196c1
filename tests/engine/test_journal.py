"""The serialized form of a journal."""

from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip import Context, Elicit
from mcp_roundtrip.engine.journal import Fingerprint, Journal, Kind
from mcp_roundtrip.engine.outcomes import NeedsInput
from mcp_roundtrip.errors import StateRejected
from support.json_values import any_json, places, replaced
from support.passes import Passes


def test_a_fingerprint_names_what_changed():
    one = Fingerprint("m", "f")
    assert one.describe_changes(one) == ""
    assert one.describe_changes(Fingerprint("n", "f")) == "message"
    assert "form" in one.describe_changes(Fingerprint("m", "g"))
    assert one.describe_changes(Fingerprint("n", "g")).startswith("message and form")


def test_fingerprints_are_stable_across_releases():
    fingerprint = Elicit("size", "How large?", int).request().fingerprint
    assert fingerprint == Fingerprint("Otjgd5dsL6hcQKL_", "ES1Z6TbNl8Z27D5C")


def everything(ctx: Context) -> Any:
    """Use every kind of entry that a state can have."""
    ctx.now("now")
    ctx.uuid("uuid")
    ctx.random("random")
    ctx.signed_link("link", "https://x.test")
    ctx.idempotency_key("key")
    ctx.step("step", int)
    ctx.elicit("default", "Default?", int, default=3)
    ctx.sample("answer", "Answer?", max_tokens=1)
    return ctx.sample("other", "Other?", max_tokens=1)


def sealed() -> dict[str, Any]:
    call = Passes(everything, {"sampling": {}}).begun()
    outcome = call(answer={"role": "user", "content": {"type": "text", "text": "x"}, "model": "m"})
    assert isinstance(outcome, NeedsInput)
    return outcome.journal.to_json()


SEALED = sealed()


@given(st.sampled_from(list(places(SEALED))), any_json(st.text(max_size=3)))
def test_a_changed_journal_is_refused_or_read_as_it_is(path, new):
    with suppress(StateRejected):
        journal = Journal.from_json(replaced(SEALED, path, new))
        assert Journal.from_json(journal.to_json()) == journal


@pytest.mark.parametrize(
    "members",
    [
        {"id": ""},
        {"id": "\ud800"},
        {"j": [[]]},
        {"j": [["a", "s"]]},
        {"j": [["a", "z", 1]]},
        {"j": [["", "s", 1]]},
        {"j": [["a", "s", 1], ["a", "s", 2]]},
        {"j": [["a", "a", {}, "m", "f", 1]]},
        {"r": -1},
        {"p": -1},
        {"x": 1},
        {"j": [["a", "\ud800", 1]]},
        {"j": [["an answer without its question", "a", {}]]},
        {"j": [["a step with a question", "s", 1, "m", "f"]]},
        {"j": [["default", "d", 1]]},
        *({"j": [["now", "n", value]]} for value in (-1, 1.5, "1", True, 253_402_300_800_000)),
        *({"j": [["time", kind, value]]} for kind in "wf" for value in (-1, 1.5, "1", True)),
        *({"j": [["uuid", "u", value]]} for value in (1, "x", str(UUID(int=1)) + "\n")),
        *({"j": [["random", "r", value]]} for value in (-0.1, 1.1, "1", True)),
        *({"j": [["text", kind, 1]]} for kind in "lb"),
    ],
    ids=ascii,
)
def test_a_malformed_journal_is_refused(members):
    with pytest.raises(StateRejected) as refused:
        Journal.from_json({"v": 1, "id": "x", **members})
    assert refused.value.reason == "journal"


@pytest.mark.parametrize("data", [None, [], {}, {"v": 1}, *({"v": v, "id": "x"} for v in (2, "1", True))])
def test_a_value_that_is_not_a_journal_is_refused(data):
    with pytest.raises(StateRejected):
        Journal.from_json(data)


def test_the_journal_that_the_malformed_ones_derive_from_is_accepted():
    kinds = {entry.kind for entry in Journal.from_json(SEALED).entries}
    assert kinds == set(Kind) - {Kind.WAKE, Kind.BEGUN, Kind.FAILED}
