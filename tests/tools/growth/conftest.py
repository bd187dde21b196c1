import difflib
from pathlib import Path

from mcp_roundtrip_tools.__main__ import main
from support.project import contents, edit


def assert_refused(project: Path, change: tuple[str, str, str], command: str, *arguments: str) -> None:
    """Assert that nothing is written after a change of a file: its path, a text, and its replacement."""
    path, before, after = change
    edit(project / path, before, after)
    found = contents(project)
    assert main([command, *arguments, "--project", str(project)]) == 2
    assert contents(project) == found


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines of the one text that are not in the other, and the reverse."""
    lines = [*difflib.ndiff(before.splitlines(), after.splitlines())]
    removed, added = ([line[2:] for line in lines if line.startswith(sign)] for sign in ("- ", "+ "))
    return removed, added
