"""Write the files of a change. Either all files are written, or none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write(files: Mapping[Path, str]) -> None:
    """Write all files. If one fails, restore the others and raise OSError."""
    before = {path: path.read_bytes() if path.exists() else None for path in files}
    made: list[Path] = []
    try:
        for path, text in files.items():
            made += (folder for folder in reversed(path.parents) if not folder.exists())
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    except BaseException:
        for path, content in before.items():
            if content is not None:
                path.write_bytes(content)
            elif path.is_file():
                path.unlink()
        for folder in reversed(made):
            if folder.is_dir():
                folder.rmdir()
        raise
