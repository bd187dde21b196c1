"""Which user of this computer opened a connection: every user can open one to 127.0.0.1.

Linux lists the sockets of all users with their owners (proc_pid_net(5), /proc/net/tcp). Other systems do not,
and there nothing is refused.
"""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.run.http.messages import Response, json_response

TABLES: Final = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))

NO_INODE: Final = "0"
"""The inode of a socket that its program has closed. Its row shows root as the owner."""


def refuse_other_users(ip: str, port: int, tables: Iterable[Path] = TABLES) -> Response | None:
    """Return 403 for a connection from this address, if another user of this computer opened it.

    The functions have the credentials that the user of this program gave them. Root may connect: root can do
    everything, and forwards ports into containers.
    """
    if _lists_no_owners():
        return None
    try:
        owner = _owner(ip, port, tables)
    except OSError:  # no such table: this is not Linux
        return None
    if owner in (0, os.getuid()):
        return None
    message = "only programs of the user who started this server may use it"
    return json_response(403, {"message": message})


def _lists_no_owners() -> bool:
    """Return whether clients can be outside of the tables: Windows connects to its Linux subsystem."""
    return "microsoft" in platform.release().lower()


def _owner(ip: str, port: int, tables: Iterable[Path]) -> int | None:
    """Return the user id of the open socket with this local address. Raises OSError without a table."""
    wanted = re.compile(rf" *\d+: (?:{'|'.join(_spellings(ip))}):{port:04X} ")
    for table in tables:
        if table.name == "tcp6" and not table.exists():  # IPv6 is disabled
            continue
        for line in table.read_text("ascii").splitlines()[1:]:
            if wanted.match(line) and (columns := line.split())[9] != NO_INODE:
                return int(columns[7])
    return None


def _spellings(ip: str) -> tuple[str, str]:
    """Return an IPv4 address as the kernel writes it, and as the end of a mapped IPv6 address."""
    word = f"{int.from_bytes(socket.inet_aton(ip), 'little'):08X}"
    return word, f"0000000000000000FFFF0000{word}"
