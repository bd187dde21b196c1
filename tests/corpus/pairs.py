"""Choose combinations in which each pair of values occurs, instead of all combinations."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

Combination = dict[str, Any]
Pair = tuple[tuple[str, Any], tuple[str, Any]]


def all_pairs(
    dimensions: Mapping[str, Sequence[Any]], is_possible: Callable[[Combination], bool]
) -> Iterator[Combination]:
    """Yield combinations of one value for each dimension, in an order that depends on the arguments only.

    Each pair of values that `is_possible` allows in any combination occurs. It takes combinations that may
    lack dimensions, and returns False if no values for these make the combination possible.
    """
    open_pairs = dict.fromkeys(_pairs(dimensions, is_possible))
    while open_pairs:
        begun = dict(next(iter(open_pairs)))
        chosen = _completed(begun, dimensions, is_possible, open_pairs)
        for pair in _pairs_of(chosen or begun):
            open_pairs.pop(pair, None)
        if chosen is not None:
            yield {name: chosen[name] for name in dimensions}


def _pairs(
    dimensions: Mapping[str, Sequence[Any]], is_possible: Callable[[Combination], bool]
) -> Iterator[Pair]:
    for first, second in combinations(sorted(dimensions), 2):
        for one in dimensions[first]:
            for other in dimensions[second]:
                if is_possible({first: one, second: other}):
                    yield ((first, one), (second, other))


def _pairs_of(combination: Combination) -> Iterator[Pair]:
    yield from combinations(sorted(combination.items(), key=lambda each: each[0]), 2)


def _completed(
    begun: Combination,
    dimensions: Mapping[str, Sequence[Any]],
    is_possible: Callable[[Combination], bool],
    open_pairs: Mapping[Pair, None],
) -> Combination | None:
    """Return the combination with values for all dimensions, those first that cover the most open pairs."""
    missing = [name for name in dimensions if name not in begun]
    if not missing:
        return begun
    name = missing[0]

    def covered(value: Any) -> int:
        added = (name, value)
        return sum(
            ((added, each) if name < each[0] else (each, added)) in open_pairs for each in begun.items()
        )

    for value in sorted(dimensions[name], key=covered, reverse=True):
        candidate = {**begun, name: value}
        if is_possible(candidate):
            completed = _completed(candidate, dimensions, is_possible, open_pairs)
            if completed is not None:
                return completed
    return None
