"""Fork worker processes: `zygote.py` reads a line of three addresses for each, and prints its process id."""

import gc
import os
import signal
import sys

# What the runtime's client imports, except its C++ part, which reads its address when it is imported.
import awslambdaric.lambda_runtime_log_utils  # type: ignore[import-untyped]
import awslambdaric.lambda_runtime_marshaller  # type: ignore[import-untyped]  # noqa: F401

from storm import function


def main() -> None:
    function.warm_up()
    gc.disable()
    gc.freeze()  # otherwise collections would copy the memory that processes share
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel removes children that have exited
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                os.close(0)
                os.dup2(2, 1)
                function.run(*line.split())
            finally:
                os._exit(1)
        print(pid, flush=True)


if __name__ == "__main__":
    main()
