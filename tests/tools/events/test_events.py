import os
import shutil
import subprocess
import sys

from support.project import ROOT
from support.sample_events import EVENTS, STABLE, function_of


def test_the_table_has_every_event_of_the_examples():
    examples = {function_of(file) for file in STABLE}
    files = [path.relative_to(EVENTS) for path in EVENTS.rglob("*.json") if path.parent.name in examples]
    assert {file.as_posix() for file in files if "live" not in file.parts} == STABLE.keys()


def test_the_command_needs_neither_aws_nor_settings_and_keeps_events_of_other_names(tmp_path):
    variables = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    shutil.copytree(EVENTS, tmp_path / "events")
    command = [sys.executable, "-m", "mcp_roundtrip_tools", "events", "--output", str(tmp_path / "events")]
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    written = {path.relative_to(tmp_path / "events") for path in tmp_path.rglob("*.json")}
    assert written == {path.relative_to(EVENTS) for path in EVENTS.rglob("*.json")}
