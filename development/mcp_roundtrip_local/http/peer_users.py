"""Which user of this computer sent a request: every user can open a connection to 127.0.0.1.

Linux lists the sockets of all users with their owners (proc_pid_net(5), /proc/net/tcp). Other systems do not,
and there nothing is refused.
"""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from mcp_roundtrip_local.http.messages import Request, Response, json_response

TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

_ESTABLISHED: Final = "01"
"""The state of an open connection. In other states, a row may have no owner and show root as one."""


def refuse_other_users(request: Request, tables: Iterable[Path] = TABLES) -> Response | None:
    """Return 403 for a request of another user of this computer than the one who runs this program.

    Root may send requests: root can do everything, and forwards ports into containers.
    """
    if _lists_no_owners():
        return None
    try:
        owners = set(_owners(request.source_ip, request.source_port, tables))
    except OSError:  # no such table: this is not Linux
        return None
    if owners and owners <= {0, os.getuid()}:
        return None
    message = "only programs of the user who runs make run may use the console"
    return json_response(403, {"message": message})


def _lists_no_owners() -> bool:
    """Return whether clients can be outside of the tables: Windows connects to its Linux subsystem."""
    return "microsoft" in platform.release().lower()


def _owners(ip: str, port: int, tables: Iterable[Path]) -> Iterator[int]:
    """Yield the user ids of the open sockets with this local address. Raises OSError without a table."""
    wanted = re.compile(rf" *\d+: (?:{'|'.join(_spellings(ip))}):{port:04X} \S+ {_ESTABLISHED} ")
    for table in tables:
        if table.name == "tcp6" and not table.exists():  # IPv6 is disabled
            continue
        for line in table.read_text("ascii").splitlines()[1:]:
            if wanted.match(line):
                yield int(line.split()[7])


def _spellings(ip: str) -> tuple[str, str]:
    """Return an IPv4 address as the kernel writes it, and as the end of a mapped IPv6 address."""
    word = f"{int.from_bytes(socket.inet_aton(ip), 'little'):08X}"
    return word, f"0000000000000000FFFF0000{word}"
