"""A second address of the page."""

from __future__ import annotations

import threading

import httpx

from headwater.lab import http_redirect, ports
from headwater.lab.waiting import wait_until


def test_browsers_are_sent_to_the_same_path_of_the_server() -> None:
    port = ports.free()
    where = (port, "http://127.0.0.1:5000")
    threading.Thread(target=http_redirect.serve, args=where, daemon=True).start()
    wait_until(lambda: ports.accepts(port), seconds=10, what="the second address")
    for asked, sent in (
        ("/graph?node=a%2Fb&depth=2", "http://127.0.0.1:5000/graph?node=a%2Fb&depth=2"),
        ("", "http://127.0.0.1:5000/"),
        ("//example.org/x", "http://127.0.0.1:5000/example.org/x"),
    ):
        answer = httpx.get(f"http://127.0.0.1:{port}{asked}", trust_env=False)
        assert (answer.status_code, answer.headers["location"]) == (307, sent)
