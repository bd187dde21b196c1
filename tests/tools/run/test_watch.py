import os

from mcp_roundtrip_tools.run.project import Watcher


def test_a_change_is_reported_once(tmp_path):
    file = tmp_path / "sub" / "a.py"
    file.parent.mkdir()
    file.write_text("1")
    watcher = Watcher([tmp_path], lambda: 0.0, interval_s=0)
    assert watcher.changed() == ()
    file.write_text("22")
    assert watcher.changed() == (file,)
    assert watcher.changed() == ()


def test_touched_new_and_deleted_files_are_changes(tmp_path):
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("1")
    watcher = Watcher([one, tmp_path], lambda: 0.0, interval_s=0)
    os.utime(one, ns=(1, 1))
    assert watcher.changed() == (one,)
    two.write_text("2")
    assert watcher.changed() == (two,)
    two.unlink()
    assert watcher.changed() == (two,)


def test_bytecode_and_hidden_files_are_ignored(tmp_path):
    watcher = Watcher([tmp_path], lambda: 0.0, interval_s=0)
    for name in ("__pycache__/a.pyc", ".git/x", "p.egg-info/PKG-INFO"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("x")
    assert watcher.changed() == ()


def test_files_are_checked_at_most_once_per_interval(tmp_path):
    now = [0.0]
    watcher = Watcher([tmp_path], lambda: now[0], interval_s=1.0)
    (tmp_path / "a.py").write_text("1")
    now[0] = 0.5
    assert watcher.changed() == ()
    now[0] = 1.0
    assert watcher.changed() != ()


def test_a_broken_link_is_ignored(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    assert Watcher([tmp_path, tmp_path / "nowhere"], lambda: 0.0, interval_s=0).changed() == ()
