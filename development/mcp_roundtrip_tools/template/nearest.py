"""Suggest the name that the author meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches


def meant_name(name: str, known: Collection[str], *, cutoff: float) -> str | None:
    """Return the known name that an unknown one nearly is; None for a known one, and if none is near.

    `cutoff`: how near, from 0 to 1 (see `difflib.get_close_matches`).
    """
    found = [] if name in known else get_close_matches(name, known, 1, cutoff)
    return found[0] if found else None


def hint(name: str, known: Mapping[str, str] | Iterable[str], listed: Iterable[str] | None = None) -> str:
    """Return what an error about an unknown name adds: the nearest name, otherwise those that exist.

    `known` may be a mapping to what is suggested. `listed` are the names that exist, if not all of `known`.
    """
    meant = known if isinstance(known, Mapping) else {each: each for each in known}
    nearest = get_close_matches(name, meant, 1)
    exist = ", ".join(meant if listed is None else listed)
    return f"did you mean {meant[nearest[0]]}?" if nearest else f"it has {exist or 'none'}"
