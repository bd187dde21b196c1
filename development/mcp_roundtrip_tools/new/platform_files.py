"""The files of platform/ as this package has them, and the checksums that tell whether they were edited."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

APPLICATION = Path(__file__).with_name("application") / "{{cookiecutter.project_name}}"
"""The files of an application. `sam init` replaces the same placeholders, with cookiecutter."""

PLATFORM = Path("platform")

CHECKSUMS = "SHA256SUMS"
"""The file in platform/ with the checksums of the others, in the format of sha256sum."""


def package_files() -> dict[str, str]:
    """Return the text of each file of platform/ in this package, by name."""
    return {path.name: path.read_text("utf-8") for path in sorted((APPLICATION / PLATFORM).glob("*.yaml"))}


def checksums(files: Mapping[str, str]) -> str:
    """Return the content of SHA256SUMS."""
    return "".join(f"{_digest(text)}  {name}\n" for name, text in sorted(files.items()))


def edited_files(platform: Path, written: Mapping[str, str]) -> list[str]:
    """Return the files in `platform` that differ from what was written there.

    Without SHA256SUMS, these are the files that differ from `written`, the package's.
    """
    sums = platform / CHECKSUMS
    lines = (sums.read_text("utf-8") if sums.is_file() else checksums(written)).splitlines()
    known = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    return [
        path.name
        for path in sorted(platform.glob("*.yaml"))
        if known.get(path.name) != _digest(path.read_text("utf-8"))
    ]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()
