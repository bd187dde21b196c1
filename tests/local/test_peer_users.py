"""Requests of other users of the computer."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import pytest

from mcp_roundtrip_local.http.messages import Request
from mcp_roundtrip_local.http.peer_users import TABLES, refuse_other_users

OTHER = os.getuid() + 1
HEADER = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode"
IPV4 = "0100007F"
MAPPED = "0000000000000000FFFF00000100007F"

Row = tuple[str, int, str, int]


def refused(folder: Path, *rows: Row) -> bool:
    lines = [
        f"   {number}: {ip}:{port:04X} {IPV4}:0BB8 {state} 00000000:00000000 00:00000000 00000000 {uid:5} 0 1"
        for number, (ip, port, state, uid) in enumerate(rows)
    ]
    table = folder / "tcp"
    table.write_text("\n".join([HEADER, *lines]))
    return refuse_other_users(Request("GET", "/", (), source_port=40_000), [table]) is not None


@pytest.mark.parametrize("ip", [IPV4, MAPPED])
def test_the_owner_of_the_client_s_socket_decides(tmp_path: Path, ip: str) -> None:
    def owned_by(uid: int) -> Sequence[Row]:
        return ((ip, 40_001, "01", OTHER), (ip, 40_000, "01", uid), (ip, 4_000, "01", OTHER))

    assert not refused(tmp_path, *owned_by(os.getuid()))
    assert not refused(tmp_path, *owned_by(0))
    assert refused(tmp_path, *owned_by(OTHER))


def test_a_client_that_has_left_is_refused_because_its_owner_is_unknown(tmp_path: Path) -> None:
    assert refused(tmp_path)
    assert refused(tmp_path, (IPV4, 40_000, "06", 0))  # TIME_WAIT shows root
    assert refused(tmp_path, (IPV4, 40_000, "04", os.getuid()))


def test_nothing_is_refused_on_a_system_that_does_not_list_owners(tmp_path: Path) -> None:
    assert refuse_other_users(Request("GET", "/", ()), [tmp_path / "missing"]) is None


@pytest.mark.skipif(not TABLES[0].exists(), reason="needs Linux")
def test_a_real_client_of_the_same_user_is_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            request = Request("GET", "/", (), source_port=client.getsockname()[1])
            assert refuse_other_users(request) is None
        assert refuse_other_users(Request("GET", "/", (), source_port=1)) is not None
