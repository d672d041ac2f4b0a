"""Ports on the loopback address."""

from __future__ import annotations

import random
import socket
from typing import TYPE_CHECKING

import psutil

from headwater.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

LOOPBACK = "127.0.0.1"
TAKEN = "it is taken"

# Below the range the kernel takes for outgoing connections: a service that is down for a moment
# must find its port still free, and a client that keeps dialling it must not connect to itself.
CHOICE = range(20000, 32000)
ATTEMPTS = 200


def is_free(port: int) -> bool:
    """Whether a server could bind to the port now."""
    return refusal(port) is None


def refusal(port: int) -> str | None:
    """Why a server could not bind to the port now, naming the one that holds it if that is known."""
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((LOOPBACK, port))
        except PermissionError:
            return "this user may not bind to it"
        except OSError:
            return TAKEN + _holder(port)
    return None


def _holder(port: int) -> str:
    try:
        for connection in psutil.net_connections("tcp"):
            listens = connection.status == psutil.CONN_LISTEN and connection.pid
            if listens and connection.laddr and connection.laddr.port == port:
                return f" by {psutil.Process(connection.pid).name()} (pid {connection.pid})"
    except psutil.Error:  # another user's, or gone meanwhile
        pass
    return ""


def free(taken: AbstractSet[int] = frozenset()) -> int:
    """A port that is free now and not among those already given."""
    for _ in range(ATTEMPTS):
        port = random.choice(CHOICE)  # noqa: S311
        if port not in taken and is_free(port):
            return port
    raise EnvironmentProblem(
        f"no free port between {CHOICE.start} and {CHOICE.stop}",
        hint="fix ports by hand: headwater lab up --port kafka=9092 …",
    )


def accepts(port: int) -> bool:
    """Whether something listens on the port."""
    with socket.socket() as sock:
        sock.settimeout(1)
        return sock.connect_ex((LOOPBACK, port)) == 0
