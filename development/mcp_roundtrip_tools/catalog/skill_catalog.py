"""The skills in the catalog of a front door, and the manifests of their folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from mcp_roundtrip.entry.server import Server
from mcp_roundtrip.server.skills import SKILL_FILE, manifest_path
from mcp_roundtrip_tools.catalog.skill_folders import SkillError, manifest_text, skill_entries

Folders = Mapping[Path, tuple[str, ...]]
"""The required scopes by folder."""


def skill_rows(folders: Mapping[str, Folders]) -> list[dict[str, Any]]:
    """Return the rows of the catalog, sorted by URI. Raises SkillError if folders share a directory."""
    rows = []
    for owner, held in folders.items():
        for folder, scopes in held.items():
            required = {"scopes": list(scopes)} if scopes else {}
            for entry in skill_entries(folder):
                root = entry["uri"].removesuffix(SKILL_FILE)
                rows.append((f"{root}/", folder, {"owner": owner, **required, "definition": entry}))
    rows.sort(key=lambda row: row[0])
    for (root, folder, _), (later, other, _) in combinations(rows, 2):
        if later.startswith(root) and folder != other:
            raise SkillError(f"{root} of {folder} contains {later} of {other}: rename one of them")
    return [row for _, _, row in rows]


def stale_manifests(servers: Iterable[Server]) -> list[Path]:
    """Return the manifests that are missing or not current. Raises SkillError."""
    folders = [folder for server in servers for folder in server.skill_folders]
    return [manifest_path(folder) for folder in folders if not _is_current(folder)]


def write_manifests(paths: Iterable[Path]) -> None:
    """Write manifests of the folders beside them. Raises SkillError."""
    for path in paths:
        if path.exists() and not path.is_file():
            raise SkillError(f"{path} is no regular file; remove it")
        path.write_text(manifest_text(path.with_suffix("")), encoding="utf-8")


def _is_current(folder: Path) -> bool:
    path = manifest_path(folder)
    return path.is_file() and path.read_text(encoding="utf-8") == manifest_text(folder)
