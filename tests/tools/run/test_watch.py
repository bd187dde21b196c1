import math
import os

from mcp_roundtrip_tools.run.project import changed_files, fingerprint
from support.sam_applications import ONE_FUNCTION, http, write_application
from support.served_application import serve


def test_touched_new_and_deleted_files_are_changes(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "sub/two.py"
    two.parent.mkdir()
    two.write_text("1")
    roots = [one, tmp_path]
    seen = fingerprint(roots)
    for change, changed in (
        (lambda: two.write_text("22"), {two}),
        (lambda: one.write_text("1"), {one}),
        (lambda: os.utime(one, ns=(1, 1)), {one}),
        (two.unlink, {two}),
        (lambda: None, set()),
    ):
        change()
        before, seen = seen, fingerprint(roots)
        assert changed_files(before, seen) == changed


def test_bytecode_hidden_files_and_broken_links_are_ignored(tmp_path):
    for name in ("__pycache__/a.pyc", ".git/x", "p.egg-info/PKG-INFO"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert fingerprint([tmp_path, tmp_path / "nowhere"]) == {}


def test_files_are_read_at_most_once_in_the_interval(tmp_path):
    source = "def handler(event, context):\n    return 1\n"
    template = write_application(tmp_path, ONE_FUNCTION, {"f/app.py": source})
    with serve(template, watch_interval_s=math.inf) as app:
        assert http(app.url()).body == b"1"
        (tmp_path / "f/app.py").write_text(source.replace("1", "2"))
        assert http(app.url()).body == b"1"
