"""The pools of all functions, replaced one by one as their sources change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from mcp_roundtrip_local.model import Function
from mcp_roundtrip_local.pool import Launched, Pool


class Pools:
    """By the name of a function. Not safe to share between threads: the caller holds a lock."""

    def __init__(self, launch: Callable[[Function], Launched], *, fresh: bool) -> None:
        self._launch = launch
        self._fresh = fresh
        self._pools: dict[str, tuple[Function, Pool]] = {}
        self._retired: list[Pool] = []

    def of(self, function: Function, code: Path) -> Pool:
        """The pool of a function that runs with the folder `code`; a new one where it had another."""
        runs = replace(function, code=code)
        if function.name not in self._pools or self._pools[function.name][0] != runs:
            self.retire([function.name])
            pool = Pool(lambda: self._launch(runs), fresh=self._fresh)
            self._pools[function.name] = runs, pool
        return self._pools[function.name][1]

    def retire(self, names: Iterable[str]) -> None:
        """Stop what is idle now, and what is busy once it has answered."""
        for name in names:
            if name in self._pools:
                _, pool = self._pools.pop(name)
                pool.retire()
                self._retired.append(pool)

    def close(self) -> None:
        """Stop every process."""
        for pool in (*self._retired, *(pool for _, pool in self._pools.values())):
            pool.close()


def affected(
    before: Mapping[str, Function], after: Mapping[str, Function], changed: Iterable[Path]
) -> list[str]:
    """The functions that are defined differently, or have one of the changed files among their sources."""
    files = tuple(changed)
    return [
        name
        for name, function in after.items()
        if before.get(name) != function or any(_is_source(path, function) for path in files)
    ]


def _is_source(path: Path, function: Function) -> bool:
    return any(path.is_relative_to(folder) for folder in (function.code, *function.layers))
