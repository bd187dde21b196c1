"""Scope hierarchies: granted and implied scopes, and the properties of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_roundtrip.auth.scopes import ScopeHierarchy, validate_scopes
from mcp_roundtrip.errors import DefinitionError

DATABASE = ScopeHierarchy.from_direct({"admin": ["write", "billing"], "write": ["read"]})

NAMES = st.sampled_from([f"s{number}" for number in range(8)])
GRANTED = st.frozensets(NAMES)
# Edges lead only from lower to higher numbers, so there are no cycles.
HIERARCHIES = st.dictionaries(NAMES, st.lists(NAMES, max_size=4)).map(
    lambda drawn: {name: [each for each in narrower if each > name] for name, narrower in drawn.items()}
)


@pytest.mark.parametrize(
    ("granted", "required", "suffices"),
    [
        (["read"], ["read"], True),
        (["write"], ["read"], True),
        (["admin"], ["read", "billing"], True),
        (["read"], ["write"], False),
        (["write"], ["billing"], False),
        (["write", "billing"], ["read", "billing"], True),
        ([], [], True),
        ([], ["read"], False),
        (["other"], ["read"], False),
        (["Read"], ["read"], False),
    ],
)
def test_a_broader_scope_implies_narrower_ones(
    granted: Sequence[str], required: Sequence[str], suffices: bool
) -> None:
    assert DATABASE.satisfies(granted, required) is suffices


@pytest.mark.parametrize(
    "hierarchy",
    [
        {"a": ["a"]},
        {"a": ["b"], "b": ["a"]},
        {"a": ["b"], "b": ["c"], "c": ["d", "b"]},
        {"a": "b"},
        {"a": ["b c"]},
        {"a b": ["c"]},
        {"": ["c"]},
        {"a": ['b"']},
        {"a": ["b\\"]},
        {"a": ["é"]},
        {"a": ["b\n"]},
        {"a": ["x" * 257]},
        {"a": [7]},
        {"a": ["offline_access"]},
        {"offline_access": ["a"]},
    ],
)
def test_a_malformed_hierarchy_is_refused(hierarchy: Mapping[str, Sequence[str]]) -> None:
    with pytest.raises(DefinitionError):
        ScopeHierarchy.from_direct(hierarchy)


@pytest.mark.parametrize("given_scopes", ["read", ["read write"], [None], [""]])
def test_a_malformed_list_of_scopes_is_refused(given_scopes: Sequence[str]) -> None:
    with pytest.raises(DefinitionError):
        validate_scopes(given_scopes)


def test_scopes_keep_their_order_without_duplicates() -> None:
    assert validate_scopes(["b", "a", "b"]) == ("b", "a")


def test_the_narrowest_scopes_do_not_imply_each_other() -> None:
    assert DATABASE.narrowest(["admin", "write", "read"]) == ("read",)
    assert DATABASE.narrowest(["admin", "other"]) == ("admin", "other")


def reachable(hierarchy: Mapping[str, Sequence[str]], granted: frozenset[str]) -> frozenset[str]:
    """Compute the reachable scopes by brute force."""
    further = granted.union(*(hierarchy.get(scope, ()) for scope in granted))
    return granted if further == granted else reachable(hierarchy, further)


@given(HIERARCHIES, GRANTED)
def test_implied_scopes_are_the_reachable_ones(
    hierarchy: Mapping[str, Sequence[str]], granted: frozenset[str]
) -> None:
    assert ScopeHierarchy.from_direct(hierarchy).expand(granted) == reachable(hierarchy, granted)


@given(HIERARCHIES, GRANTED, GRANTED, GRANTED)
def test_an_additional_scope_never_grants_less(
    hierarchy: Mapping[str, Sequence[str]],
    granted: frozenset[str],
    more: frozenset[str],
    required: frozenset[str],
) -> None:
    scopes = ScopeHierarchy.from_direct(hierarchy)
    assert scopes.satisfies(required, required)
    assert scopes.expand(scopes.expand(granted)) == scopes.expand(granted)
    if scopes.satisfies(granted, required):
        assert scopes.satisfies(granted | more, required)
        assert scopes.satisfies(more, required) or not scopes.satisfies(more, granted)


@given(HIERARCHIES, GRANTED)
def test_the_narrowest_scopes_are_implied_by_all_of_them(
    hierarchy: Mapping[str, Sequence[str]], among: frozenset[str]
) -> None:
    scopes = ScopeHierarchy.from_direct(hierarchy)
    narrowest = scopes.narrowest(among)
    assert set(narrowest) <= among
    assert all(scopes.expand([scope]) & set(narrowest) for scope in among)


@given(HIERARCHIES, NAMES, NAMES)
def test_every_cycle_is_refused(hierarchy: dict[str, list[str]], start: str, end: str) -> None:
    if start not in ScopeHierarchy.from_direct(hierarchy).expand([end]):
        hierarchy[end] = [*hierarchy.get(end, ()), start]
    hierarchy[start] = [*hierarchy.get(start, ()), end]
    with pytest.raises(DefinitionError):
        ScopeHierarchy.from_direct(hierarchy)
