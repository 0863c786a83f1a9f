"""A connection has ended when the kernel lists it no longer, and not because we cannot see it."""

from __future__ import annotations

import socket
from pathlib import Path

from provision.mirror.connections import Connection, gone


def test_a_connection_is_there_until_it_is_closed() -> None:
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        try:
            server = socket.create_server((address, 0), family=family)
        except OSError:  # without IPv6
            continue
        here = server.getsockname()[1]
        client = socket.create_connection((address, here))
        one = Connection.read(f"{address} {client.getsockname()[1]} {here}")
        never = Connection(one.address, 1, here)
        served, _ = server.accept()
        assert gone([one, never]) == {never}
        client.shutdown(socket.SHUT_WR)  # it has sent all, and waits for an answer
        assert served.recv(1) == b""
        assert gone([one]) == set()
        client.close()
        served.close()
        assert gone([one]) == {one}
        server.close()


def test_an_ipv4_client_of_an_ipv6_socket_is_found() -> None:
    if not socket.has_dualstack_ipv6():
        return
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        here = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", here)) as client:
            mapped = Connection.read(f"::ffff:127.0.0.1 {client.getsockname()[1]} {here}")
            plain = Connection.read(f"127.0.0.1 {client.getsockname()[1]} {here}")
            assert gone([mapped, plain]) == set()


def test_what_may_be_in_another_namespace_is_not_said_to_have_ended(tmp_path: Path) -> None:
    (tmp_path / "tcp").write_text("  sl  local_address rem_address   st\n")
    assert gone([Connection("10.0.0.1", 4000, 80)], [tmp_path / "tcp", tmp_path / "tcp6"]) == set()
