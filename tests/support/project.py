"""The folders and functions of this project, and a copy of it for tests that change it."""

import shutil
from pathlib import Path

from mcp_roundtrip_tools.template.yaml_reader import load

ROOT = Path(__file__).parents[2]
FUNCTIONS = ROOT / "functions"
TOOL, TASK_TOOL = "scratch_tool", "scratch_task"
"""The names of new tools in tests. They must not be the names of existing tools of a project."""

COPIED = (
    *("development", "events", "functions", "layers", "platform", "tests"),
    *("CHANGELOG.md", "LICENSE", "Makefile", "README.md", "pyproject.toml", "samconfig.toml"),
    "template.yaml",
)


def logical_ids() -> dict[str, str]:
    """Return the logical id of every function, by its name without the stack's name."""
    return {
        folder + ("_worker" if logical_id.endswith("WorkerFunction") else ""): logical_id
        for logical_id, folder in functions().items()
    }


def functions() -> dict[str, str]:
    """Return the folder in functions/ of every function, by logical id."""
    return {
        name: Path(resource["Properties"]["CodeUri"]).name
        for name, resource in load(ROOT / "template.yaml")["Resources"].items()
        if resource["Type"] == "AWS::Serverless::Function"
    }


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
