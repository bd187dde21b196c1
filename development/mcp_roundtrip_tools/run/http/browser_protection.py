"""Which requests of web pages, and of other users of this computer, the servers refuse."""

import os
import platform
import socket
import struct
from collections.abc import Callable, Collection
from typing import Final

from mcp_roundtrip_tools.run.http.messages import Request, Response, error_response

LOCAL_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""The host names of this computer in URLs that no name service resolves."""

PAGE_HEADERS: Final = (
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
)
"""Headers of each page, beside its Content-Security-Policy."""


def refuse_wrong_host(request: Request, port: int, names: Collection[str] = LOCAL_NAMES) -> Response | None:
    """Return 421 for a request whose Host is not one of the names and `port` (RFC 9110 §15.5.20)."""
    host = request.header("host")
    if host is None and request.protocol == "HTTP/1.0":  # no browser sends it
        return None
    # Browsers omit the default port.
    known = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
    if host is not None and host.lower() in known:
        return None
    return error_response(421, f"Host must be one of {', '.join(f'{name}:{port}' for name in LOCAL_NAMES)}")


def refuse_web_page(request: Request) -> Response | None:
    """Return 403 for every request that a web page causes, of any origin."""
    if request.header("origin") is None and request.header("sec-fetch-site") is None:
        return None
    return error_response(
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
        return error_response(
            403, "pages of this origin may not call the API: its CORS (AllowedOrigins) has to name it"
        )
    if origin is None and site not in (None, "same-origin", "none") and mode != "navigate":
        return error_response(
            403, "pages of other origins may not load this resource: open it in its own window"
        )
    return None


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

    Functions have the credentials of this user. Root can do everything, and forwards ports into containers.
    """
    # Windows connects to its Linux subsystem.
    if platform.system() != "Linux" or "microsoft" in platform.release().lower():
        return None
    try:
        owner = socket_owner(client, server)
    except OSError:  # a sandbox does not let programs ask
        return None
    if owner in (0, os.getuid()):
        return None
    return error_response(403, "only programs of the user who started this server may use it")


def socket_owner(local: Address, remote: Address) -> int | None:
    """Return the user id of the open TCP socket with these addresses; None if there is no such socket.

    Raises OSError if the kernel does not answer. /proc/net/tcp has the same, and takes five milliseconds.
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


_OF_PROXIES: Final = frozenset(
    {"forwarded", "via", "x-real-ip", "x-original-host", "cf-connecting-ip", "cf-ray", "true-client-ip"}
)
"""Headers that proxies add: RFC 7239, RFC 9110 §7.6.3, and those of tunnels."""


def came_through_proxy(request: Request) -> str | None:
    """Return the header that a proxy has added, such as a tunnel from the internet; None if there is none."""
    names = (name for name, _ in request.headers)
    return next((n for n in names if n.lower() in _OF_PROXIES or n.lower().startswith("x-forwarded-")), None)
