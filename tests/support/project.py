"""The folders of this project, and a copy of it for tests that change it."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
TOOL, TASK_TOOL = "scratch_tool", "scratch_task"
"""The names of new tools in tests. They must not be the names of existing tools of a project."""

COPIED = (
    *("development", "events", "functions", "layers", "platform", "tests"),
    *("CHANGELOG.md", "LICENSE", "Makefile", "README.md", "pyproject.toml", "samconfig.toml"),
    "template.yaml",
)


def copy_project(folder: Path) -> Path:
    """Copy the sources, without installed and built files, into `folder`, and return it."""
    ignored = shutil.ignore_patterns("__pycache__", "live")
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        else:
            shutil.copy2(source, folder / name)
    return folder


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text in a file, which has it."""
    text = path.read_text("utf-8")
    assert old in text, (path, old)
    path.write_text(text.replace(old, new), "utf-8")


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file with its content, and every folder without."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else b""
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }
