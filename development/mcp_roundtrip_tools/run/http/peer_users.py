"""Which user of this computer opened a connection: every user can open one to 127.0.0.1.

Linux tells the owner of a socket (sock_diag(7)). Other systems do not, and there nothing is refused.
"""

from __future__ import annotations

import os
import platform
import socket
import struct
from typing import Final

from mcp_roundtrip_tools.run.http.messages import Response, json_response

Address = tuple[str, int]
"""An IPv4 address and a port."""

NO_INODE: Final = 0
"""The inode of a socket that its program has closed. Its owner is shown as root."""

_DIAGNOSIS: Final = 4
"""NETLINK_SOCK_DIAG."""

_HEADER: Final = struct.Struct("=IHHII")
"""Length, type, flags, sequence number and port: struct nlmsghdr."""

_SOCKET: Final = struct.Struct("!HH4s12x4s12x")
"""The ports and the addresses at the beginning of struct inet_diag_sockid."""

_BY_FAMILY, _IS_REQUEST, _ANY_STATE, _ANY_COOKIE = 20, 1, 0xFFFFFFFF, b"\xff" * 8

_OWNER: Final = struct.Struct("=II")
_OWNER_AT: Final = _HEADER.size + 4 + 48 + 12
"""Where the response has the user id and the inode: struct inet_diag_msg."""


def refuse_other_users(client: Address, server: Address) -> Response | None:
    """Return 403 for a connection between these addresses, if another user of this computer opened it.

    The functions have the credentials that the user of this program gave them. Root may connect: root can do
    everything, and forwards ports into containers.
    """
    if platform.system() != "Linux" or _has_clients_outside():
        return None
    try:
        owner = socket_owner(client, server)
    except OSError:  # a sandbox does not let programs ask
        return None
    if owner in (0, os.getuid()):
        return None
    message = "only programs of the user who started this server may use it"
    return json_response(403, {"message": message})


def _has_clients_outside() -> bool:
    """Return whether clients can run outside of the system: Windows connects to its Linux subsystem."""
    return "microsoft" in platform.release().lower()


def socket_owner(local: Address, remote: Address) -> int | None:
    """Return the user id of the open TCP socket with these addresses; None if there is no such socket.

    Raises OSError if the kernel does not answer. /proc/net/tcp has the same, and all other sockets with it.
    """
    wanted = _SOCKET.pack(local[1], remote[1], socket.inet_aton(local[0]), socket.inet_aton(remote[0]))
    body = struct.pack("=BBxxI", socket.AF_INET, socket.IPPROTO_TCP, _ANY_STATE) + wanted
    body += struct.pack("=I", 0) + _ANY_COOKIE
    head = _HEADER.pack(_HEADER.size + len(body), _BY_FAMILY, _IS_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _DIAGNOSIS) as kernel:
        kernel.send(head + body)
        answer = kernel.recv(1_024)
    if _HEADER.unpack_from(answer)[1] != _BY_FAMILY:  # NLMSG_ERROR: there is no such socket
        return None
    owner, inode = _OWNER.unpack_from(answer, _OWNER_AT)
    return None if inode == NO_INODE else int(owner)
