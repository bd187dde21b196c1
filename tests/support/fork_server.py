"""Run modules as programs in forks of this process, which has imported what they need.

    python fork_server.py SOCKET MODULE…

Each run saves the time of these imports. Ends at the end of its standard input, and kills the runs that are
left.
"""

import ast
import gc
import importlib
import os
import runpy
import select
import signal
import socket
import sys
import threading


def main(path: str, *modules: str) -> None:
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # what a fork does not traverse, it does not copy
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
                    status = run(client)
                    os._exit(status)  # the one of `run`
    os.killpg(0, signal.SIGKILL)


def run(client: socket.socket) -> int:
    """Run `-m MODULE …`, `-c CODE …` or `-P FILE …` with the folder, environment and streams of the client.

    The program is killed if its client is.
    """
    size, streams, _, _ = socket.recv_fds(client, 4, 3)
    with client.makefile("rb") as file:
        request = ast.literal_eval(file.read(int.from_bytes(size)).decode())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # The text streams of the server remember what kind of file theirs is.
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", buffering=1), open(2, "w", buffering=1)  # noqa: SIM115
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    threading.Thread(target=kill_with, args=(client,), daemon=True).start()
    leave = os._exit

    def exit_with(status: int) -> None:
        client.sendall(bytes([status]))
        leave(status)

    os._exit = exit_with  # type: ignore[assignment]  # programs call it, too
    option, program, *arguments = request["arguments"]
    assert option in ("-m", "-c", "-P"), "the only ways to run a program in a fork"
    status = 1
    try:
        if option == "-m":
            sys.argv = [program, *arguments]
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        elif option == "-P":
            sys.argv = [program, *arguments]
            runpy.run_path(program, run_name="__main__")
        else:
            sys.argv = ["-c", *arguments]
            exec(program, {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def kill_with(client: socket.socket) -> None:
    """Kill this process when its client ends. A client that lives waits for the status, and sends nothing."""
    client.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
