"""The orders that tests run are enough: every order of all operations has the outcome of one of them."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip_testing.task_table import MemoryStore
from support.interleavings import every_order

operations = st.lists(
    st.one_of(
        st.tuples(st.just("get"), st.just("a"), st.sampled_from("xy")),
        st.tuples(st.just("query"), st.just("a")),
        st.tuples(
            st.just("put_new"), st.fixed_dictionaries({"pk": st.just("a"), "sk": st.sampled_from("xy")})
        ),
    ),
    min_size=1,
    max_size=3,
)


def execute(store, operation, owner):
    """Execute an operation, and return what it returns. A row names its owner."""
    name, *given = operation
    found = getattr(store, name)(*({**each, "owner": owner} if name == "put_new" else each for each in given))
    return repr(found)


def program(operations, owner):
    return lambda store: [execute(store, each, owner) for each in operations]


@given(operations, operations)
def test_every_order_has_the_outcome_of_one_that_is_run(one, other):
    def new_world():
        return MemoryStore(), [program(one, "one"), program(other, "other")]

    ran = [
        ([process.result for process in processes], store.query("a"))
        for store, processes in every_order(new_world)
    ]
    for turns in combinations(range(len(one) + len(other)), len(one)):
        store, results, rest = MemoryStore(), ([], []), ([*one], [*other])
        for turn in range(len(one) + len(other)):
            number = int(turn not in turns)
            results[number].append(execute(store, rest[number].pop(0), ("one", "other")[number]))
        assert ([*results], store.query("a")) in ran
