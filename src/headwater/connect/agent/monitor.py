"""`/health` and `/metrics` of the agent, for Kubernetes and Prometheus."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import msgspec

from headwater import __version__
from headwater.errors import EnvironmentProblem
from headwater.lineage.naming import redact
from headwater.metrics import CONTENT_TYPE, Metric, exposition, gauge, labelled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.connect.agent.process import AgentProcess, ClusterThread

__all__ = ["health", "metrics", "monitored"]


class _EventTime(msgspec.Struct):
    eventTime: datetime  # noqa: N815


_event_time = msgspec.json.Decoder(_EventTime)


def health(process: AgentProcess) -> dict[str, Any]:
    """Whether the agent does its work: `failing` when no cluster has answered for its grace time."""
    threads = process.threads
    clusters: list[dict[str, Any]] = [
        {
            "name": thread.config.name,
            "lastPoll": thread.polled_at or None,
            "connectors": len(thread.agent.tracked),
            "problems": thread.agent.problems.all(),
        }
        for thread in threads
    ]
    clusters += [{"name": name, "problems": [text]} for name, text in process.rejected.items()]
    status = "ok" if process.outbox.leads else "standby"
    if threads and all(map(_is_silent, threads)):
        status = "failing"
    return {"status": status, "version": __version__, "clusters": clusters}


def _is_silent(thread: ClusterThread) -> bool:
    return time.time() - (thread.polled_at or thread.began) > thread.config.times.grace


def metrics(process: AgentProcess) -> list[Metric]:
    """The agent's figures."""
    threads = {thread.config.name: thread for thread in process.threads}

    def of_clusters(name: str, about: str, figures: dict[str, float]) -> Metric:
        samples = [({"cluster": cluster}, figure) for cluster, figure in figures.items()]
        return labelled(f"headwater_agent_{name}", "gauge", about, samples)

    return [
        labelled("headwater_build_info", "gauge", "The version.", [({"version": __version__}, 1)]),
        gauge("headwater_agent_leading", "1: emits; 0: stands by.", process.outbox.leads),
        gauge(
            "headwater_agent_clusters_rejected",
            "Clusters whose configuration cannot be used.",
            len(process.rejected),
        ),
        labelled(
            "headwater_agent_polls_total",
            "counter",
            "Polls of Connect, by outcome.",
            (
                ({"cluster": name, "outcome": outcome}, count)
                for name, thread in threads.items()
                for outcome, count in (("ok", thread.polls), ("failed", thread.failed_polls))
            ),
        ),
        of_clusters(
            "last_poll_timestamp_seconds",
            "When Connect last answered a poll; 0: not yet.",
            {name: thread.polled_at for name, thread in threads.items()},
        ),
        of_clusters(
            "poll_seconds",
            "Seconds that the last poll took.",
            {name: thread.poll_seconds for name, thread in threads.items()},
        ),
        of_clusters(
            "connectors",
            "Connectors known.",
            {name: len(thread.agent.tracked) for name, thread in threads.items()},
        ),
        of_clusters(
            "quarantined",
            "Connectors left alone for a while, because reading them failed.",
            {name: thread.agent.problems.waiting for name, thread in threads.items()},
        ),
        of_clusters(
            "problems",
            "Problems of a cluster, its connectors and the services beside it.",
            {name: len(thread.agent.problems.all()) for name, thread in threads.items()},
        ),
        *_outbox(process),
    ]


def _outbox(process: AgentProcess) -> Iterator[Metric]:
    outbox = process.outbox
    waiting = outbox.waiting()
    shown = {
        name: {"destination": redact(text)}
        for name, text in outbox.destinations().items()
        if name in waiting or name in process.destinations
    }
    yield labelled(
        "headwater_agent_outbox_events",
        "gauge",
        "Events that wait for their destination.",
        ((labels, waiting.get(name, 0)) for name, labels in shown.items()),
    )
    yield labelled(
        "headwater_agent_outbox_lag_seconds",
        "gauge",
        "Age of the oldest event that waits.",
        ((labels, _lag(outbox.pending(name, 1))) for name, labels in shown.items()),
    )
    yield gauge(
        "headwater_agent_refused_events",
        "Events that a server refused, see `headwater outbox list`.",
        outbox.refused_count(),
    )


def _lag(oldest: list[Any]) -> float:
    if not oldest:
        return 0.0
    moment = _event_time.decode(oldest[0].body).eventTime
    return max(0.0, time.time() - moment.timestamp())


@contextmanager
def monitored(process: AgentProcess, host: str, port: int) -> Iterator[str]:
    """Answer for the agent while it runs; the address."""

    class Answers(BaseHTTPRequestHandler):
        server_version, sys_version = "headwater", ""
        timeout = 10.0

        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            try:
                if path == "/health":
                    found = health(process)
                    code = 503 if found["status"] == "failing" else 200
                    self._answer(code, "application/json", msgspec.json.encode(found))
                elif path == "/metrics":
                    self._answer(200, CONTENT_TYPE, exposition(metrics(process)).encode())
                else:
                    self._answer(404, "text/plain", b"/health or /metrics\n")
            except Exception as error:  # noqa: BLE001  (the state may be away)
                reason = redact(f"{type(error).__name__}: {error}\n")
                self._answer(503, "text/plain", reason.encode())
            finally:
                process.outbox.forget_connection()

        def _answer(self, code: int, kind: str, body: bytes) -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Say nothing: scrapes come every few seconds."""

    try:
        server = ThreadingHTTPServer((host, port), Answers)
    except OSError as error:
        raise EnvironmentProblem(
            f"cannot listen on {host}:{port}: {error.strerror}", hint="say another --metrics-port"
        ) from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="monitor", daemon=True).start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
