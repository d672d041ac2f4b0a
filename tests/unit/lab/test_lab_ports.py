"""Ports on the loopback address."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.errors import EnvironmentProblem
from headwater.lab import ports

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind((ports.LOOPBACK, 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_free_port_can_be_bound() -> None:
    port = ports.free()
    assert ports.is_free(port)
    assert not ports.accepts(port)


def test_a_taken_port_is_seen_with_the_process_that_holds_it(taken: int) -> None:
    assert not ports.is_free(taken)
    assert ports.accepts(taken)
    assert f"(pid {os.getpid()})" in str(ports.refusal(taken))


def test_a_port_taken_on_every_interface_is_taken() -> None:
    with socket.socket() as server:
        server.bind(("0.0.0.0", 0))
        server.listen()
        assert not ports.is_free(server.getsockname()[1])


def test_a_port_this_user_may_not_bind_is_not_called_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "bind", denied)
    assert ports.refusal(80) == "this user may not bind to it"


def test_free_never_gives_one_already_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "CHOICE", range(20000, 20002))
    monkeypatch.setattr(ports, "is_free", lambda _port: True)
    assert {ports.free({20000}) for _ in range(20)} == {20001}


def test_no_free_port_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "is_free", lambda _port: False)
    with pytest.raises(EnvironmentProblem, match="no free port") as caught:
        ports.free()
    assert "--port" in str(caught.value.hint)


def test_the_choice_lies_outside_what_the_kernel_gives_to_clients() -> None:
    told = Path("/proc/sys/net/ipv4/ip_local_port_range")
    # What Linux and macOS start from unless told otherwise.
    lowest = int(told.read_text().split()[0]) if told.exists() else 49152
    assert max(ports.CHOICE) < lowest
    assert min(ports.CHOICE) > 1024
