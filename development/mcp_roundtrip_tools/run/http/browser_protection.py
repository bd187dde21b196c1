"""Which requests of web pages, and of other users of this computer, the servers refuse."""

from __future__ import annotations

import os
import platform
import socket
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from mcp_roundtrip_tools.run.http.messages import Request, Response, json_response

LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""The host names of this computer in URLs that no name service resolves."""


def refuse_wrong_host(request: Request, port: int, names: Collection[str] = LOCAL_NAMES) -> Response | None:
    """Return 421 for a request whose Host is not one of the names and `port` (RFC 9110 §15.5.20)."""
    host = request.header("host")
    if host is None and request.protocol == "HTTP/1.0":  # no browser sends it
        return None
    if host is not None and host.lower() in _authorities(port, names):
        return None
    return _refusal(421, f"Host must be one of {', '.join(f'{name}:{port}' for name in LOCAL_NAMES)}")


def refuse_web_page(request: Request) -> Response | None:
    """Return 403 for every request that a web page causes, of any origin."""
    if request.header("origin") is None and request.header("sec-fetch-site") is None:
        return None
    return _refusal(
        403, "web pages may not call this endpoint: send the request without Origin and Sec-Fetch-Site"
    )


def refuse_cross_origin(request: Request, allows: Callable[[str], bool]) -> Response | None:
    """Return 403 for a request from a page of another origin, unless `allows` accepts the origin.

    Navigation (a link that a person follows) is not refused, and neither is a form that a page of this server
    posts under the referrer policy `no-referrer`, which has the origin "null" (Fetch standard).
    """
    origin = request.header("origin")
    site, mode = request.header("sec-fetch-site"), request.header("sec-fetch-mode")
    own = f"http://{(request.header('host') or '').lower()}"
    is_own_form = origin == "null" and site == "same-origin"
    if origin is not None and origin != own and not is_own_form and not allows(origin):
        return _refusal(403, "pages of this origin may not call the API: add the origin to AllowedOrigins")
    if origin is None and site not in (None, "same-origin", "none") and mode != "navigate":
        return _refusal(403, "pages of other origins may not load this resource: open it in its own window")
    return None


def _authorities(port: int, names: Collection[str]) -> set[str]:
    # Browsers omit the default port.
    return {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())


def _refusal(status: int, message: str) -> Response:
    return json_response(status, {"message": message})


Address = tuple[str, int]
"""An IPv4 address and a port."""


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

    Raises OSError if the kernel does not tell. A socket that its program has closed has no inode.
    """
    wanted = [_in_table(local), _in_table(remote)]
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text("ascii").splitlines()[1:]:
            fields = line.split()
            if [each.removeprefix(_MAPPED) for each in fields[1:3]] == wanted and fields[9] != "0":
                return int(fields[7])
    return None


_MAPPED: Final = "0000000000000000FFFF0000"
"""Before the IPv4 address of a socket for IPv6 (RFC 4291 §2.5.5.2)."""


def _in_table(address: Address) -> str:
    """Return an address as the kernel writes it: a number in this computer's order of bytes, and the port."""
    number = int.from_bytes(socket.inet_aton(address[0]), sys.byteorder)
    return f"{number:08X}:{address[1]:04X}"


_OF_PROXIES: Final = frozenset(
    {"forwarded", "via", "x-real-ip", "x-original-host", "cf-connecting-ip", "cf-ray", "true-client-ip"}
)
"""Headers that proxies add: RFC 7239, RFC 9110 §7.6.3, and those of tunnels."""


def came_through_proxy(request: Request) -> str | None:
    """Return the header that a proxy has added, such as a tunnel from the internet; None if there is none."""
    names = (name for name, _ in request.headers)
    return next((n for n in names if n.lower() in _OF_PROXIES or n.lower().startswith("x-forwarded-")), None)
