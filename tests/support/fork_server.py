"""Run modules as programs in forks of this process, which has imported what they need.

    python fork_server.py SOCKET MODULE…

Each run saves the time of these imports. Ends at the end of its standard input, and kills the runs that are
left.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys


def main(path: str, *modules: str) -> None:
    for module in modules:
        importlib.import_module(module)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # this process waits for no fork: clients get their status
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        while listener in select.select([listener, sys.stdin], [], [])[0]:
            client, _ = listener.accept()
            with client:
                if os.fork() == 0:
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    listener.close()
                    client.sendall(bytes([run(client)]))
                    os._exit(0)
    os.killpg(0, signal.SIGKILL)


def run(client: socket.socket) -> int:
    """Run `-m MODULE …` with the arguments, folder, environment and standard streams of the client."""
    size, streams, _, _ = socket.recv_fds(client, 4, 3)
    with client.makefile("rb") as file:
        request = json.loads(file.read(int.from_bytes(size)))
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The text streams of the server remember what kind of file theirs is.
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    option, module, *arguments = request["arguments"]
    assert option == "-m", "the only way to run a program in a fork"
    sys.argv = [module, *arguments]
    status = 1
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    return status


if __name__ == "__main__":
    main(*sys.argv[1:])
