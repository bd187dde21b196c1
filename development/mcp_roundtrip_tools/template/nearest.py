"""Suggest the name that the author meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def hint(name: str, known: Mapping[str, str] | Iterable[str], listed: Iterable[str] | None = None) -> str:
    """Return what an error about an unknown name adds: the nearest name, otherwise those that exist.

    `known` may be a mapping to what is suggested. `listed` are the names that exist, if not all of `known`.
    """
    meant = known if isinstance(known, Mapping) else {each: each for each in known}
    nearest = get_close_matches(name, meant, 1)
    exist = ", ".join(meant if listed is None else listed)
    return f"did you mean {meant[nearest[0]]}?" if nearest else f"it has {exist or 'none'}"
