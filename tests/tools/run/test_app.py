import math
import os
import re
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from mcp_roundtrip_tools.template.model import FunctionFailed
from support.project import edit
from support.sam_applications import http, wait_until
from support.served_application import serve


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def process_exists(pid):
    """Return whether there is a process, even one that has ended and is not waited for."""
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def processes_started(app):
    return sum(each.is_new_environment for each in app.recorder.invocations())


def test_a_process_serves_several_requests(template):
    with serve(template) as app:
        pids = {http(app.url("/echo")).json()["pid"] for _ in range(3)}
        assert len(pids) == processes_started(app) == 1
    wait_until(lambda: not is_running(*pids))
    with pytest.raises(FunctionFailed):
        app.invoke("Odd", {"do": "pid"})
    assert processes_started(app) == 1, "after the end, no process is started"


def test_a_process_that_has_died_is_replaced(template):
    with serve(template, python=sys.executable) as app:
        died = http(app.url("/echo")).json()["pid"]
        os.kill(died, signal.SIGKILL)
        wait_until(lambda: not process_exists(died))  # the run has noticed its end
        assert http(app.url("/echo")).json()["pid"] != died
        assert processes_started(app) == 2


def test_with_fresh_every_request_gets_a_new_process(template):
    with serve(template, fresh=True) as app:
        pids = [http(app.url("/echo")).json()["pid"] for _ in range(2)]
        assert pids[0] != pids[1]
        assert processes_started(app) == 2
        wait_until(lambda: not any(is_running(pid) for pid in pids))


def restarts(log: list[str]) -> list[tuple[str, str]]:
    """Return the file that changed and the functions that restarted."""
    return [found for line in log for found in re.findall("^(.+) changed: (.+) restarted", line)]


def test_a_change_of_code_layer_or_template_takes_effect(template, log):
    with serve(template, watch_interval_s=0, log=log.append) as app:
        first = http(app.url("/echo")).json()
        (template.parent / "layer/in_layer.py").write_text("VALUE = 'changed'\n")
        second = http(app.url("/echo")).json()
        assert second["layer"] == "changed"
        wait_until(lambda: not is_running(first["pid"]))
        edit(template, "Path: /echo,", "Path: /three,")
        edit(template, "STAGE: !Ref Stage", "STAGE: second")
        assert http(app.url("/echo")).status == 404
        assert http(app.url("/three")).json()["environment"]["STAGE"] == "second"
        readable = template.read_text()
        template.write_text("Resources: [")
        assert http(app.url("/three")).json()["environment"]["STAGE"] == "second"
        (template.parent / "layer/in_layer.py").write_text("VALUE = 'saved meanwhile'\n")
        assert http(app.url("/three")).json()["layer"] == "changed"
        template.write_text(readable)
        assert http(app.url("/three")).json()["layer"] == "saved meanwhile"
        template.write_text(f"{readable}# a comment\n")
        app.current()
    shared = f"{template.parent}/layer/in_layer.py"
    expected = [(shared, "Echo"), (f"{template}", "Echo"), (shared, "Echo"), (f"{template}", "no function")]
    assert restarts(log) == expected
    hints = ["Metadata.LocalRun" in line for line in log if " changed: " in line]
    assert hints == [False, False, False, True]
    assert ["The error" in line for line in log if "corrected" in line] == [False, False, True]


def test_files_are_read_at_most_once_in_the_interval(template):
    with serve(template, watch_interval_s=math.inf) as app:
        before = http(app.url("/odd/pid")).json()
        (template.parent / "odd/app.py").write_text("handler = print\n")
        assert http(app.url("/odd/pid")).json() == before


def test_only_functions_affected_by_a_change_restart(template, log):
    folder = template.parent
    with serve(template, watch_interval_s=0, log=log.append) as app:

        def pids() -> list[int]:
            return [http(app.url(path)).json()["pid"] for path in ("/echo", "/odd/pid")]

        first = pids()
        for name in ("__pycache__/app.pyc", ".git/index", ".app.py.swp", "odd.egg-info/PKG-INFO"):
            (folder / "odd" / name).parent.mkdir(exist_ok=True)
            (folder / "odd" / name).write_text("x")
        (folder / "odd/gone.py").symlink_to("nowhere")
        assert pids() == first
        assert not any("restarted" in line for line in log), "files that Python does not import"
        (folder / "echo/app.py").write_text((folder / "echo/app.py").read_text() + "# changed\n")
        second = pids()
        assert (second[0] != first[0], second[1] == first[1]) == (True, True)
        template.write_text(template.read_text() + "# a comment\n")
        assert pids() == second
        edit(template, "NAME: odd", "NAME: other")
        third = pids()
        assert (third[0] == second[0], third[1] != second[1]) == (True, True)
        (folder / "layer/in_layer.py").write_text("VALUE = 3\n")
        assert pids()[1] == third[1]
    assert {(f"{folder}/echo/app.py", "Echo"), (f"{template}", "no function")} <= set(restarts(log))


def test_a_request_is_answered_although_its_function_restarts_meanwhile(template, log):
    source = template.parent / "echo/app.py"
    source.write_text(
        "import pathlib, time\n"
        "def handler(event, context):\n"
        "    print('begun', flush=True)\n"
        "    while not pathlib.Path('go').exists():\n"
        "        time.sleep(0.01)\n"
        "    return 'ended'\n"
    )
    with serve(template, watch_interval_s=0, log=log.append) as app, ThreadPoolExecutor() as workers:
        call = workers.submit(http, app.url("/echo"))
        wait_until(lambda: any("begun" in line for line in log))
        source.write_text("handler = print\n")
        app.current()
        (source.parent / "go").touch()
        assert call.result(20).body == b"ended"


def test_keys_persist_over_a_change_of_the_template(template):
    with serve(template, watch_interval_s=0) as app:
        before = app.functions()["Echo"].environment["KEY"]
        template.write_text(template.read_text() + "\n# changed\n")
        assert app.functions()["Echo"].environment["KEY"] == before
        assert app.kms.key(before).arn == before


def test_no_process_is_left_running_at_the_end(template, log):
    source = template.parent / "echo/app.py"
    source.write_text(
        "import os, subprocess, time\n"
        "def handler(event, context):\n"
        "    child = subprocess.Popen(['sleep', '600'])\n"
        "    print(os.getpid(), child.pid)\n"
        "    time.sleep(600)\n"
    )
    edit(template, "Timeout: 5}", "Timeout: 300}")
    with ThreadPoolExecutor() as workers:
        with serve(template, python=sys.executable, log=log.append) as app:
            call = workers.submit(app.invoke, "Echo", {})
            wait_until(lambda: bool(log))
        with pytest.raises(FunctionFailed):
            call.result(10)
    processes = [int(word) for word in log[0].split()[1:]]
    assert len(processes) == 2
    wait_until(lambda: not any(is_running(pid) for pid in processes))


def test_concurrent_requests_have_separate_processes_of_which_there_are_at_most_ten(running):
    url = running.app.url("/odd/nap")
    with ThreadPoolExecutor(12) as workers:
        pids = set(workers.map(lambda _: http(url).json()["pid"], range(12)))
    assert 3 <= len(pids) <= 10
