"""Folders of skills, and the check that a client makes of what it reads."""

from base64 import b64decode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from mcp_roundtrip.server.skills import manifest_path
from mcp_roundtrip_tools.catalog.skill_folders import manifest_text


def skill_file(name: str, description: str = "Do it.", *members: str) -> str:
    """Return a SKILL.md. `members` are further lines of the frontmatter."""
    return "\n".join(["---", f"name: {name}", f"description: {description}", *members, "---", "", "Text.\n"])


def write_skills(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder, and return it."""
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def with_manifest(folder: Path) -> Path:
    """Write the manifest of a folder, and return the folder."""
    manifest_path(folder).write_text(manifest_text(folder), encoding="utf-8")
    return folder


def matches(resource: Mapping[str, Any], contents: Mapping[str, Any]) -> bool:
    """Return whether contents have URI, size and digest of a SkillResource, as a client verifies them."""
    content = contents["text"].encode() if "text" in contents else b64decode(contents["blob"])
    return dict(resource) == {
        "uri": contents["uri"],
        "digest": f"sha256:{sha256(content).hexdigest()}",
        "size": len(content),
    }
