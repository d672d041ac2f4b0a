"""What one process tells: an outbox of its own, the runs it has open, and a watchdog beside it.

Each run that is open is kept with the words that would end it, in the same transaction as its
events. Whoever finds the process gone, its watchdog or the next process in the same folder, ends
those runs and sends what is left.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.emit import event, once
from headwater.emit.outbox import Outbox
from headwater.emit.sender import Sender
from headwater.emit.transport import destinations
from headwater.lineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Mapping

OPEN = "run:"
ADOPT_SECONDS = 60.0
KEPT_SECONDS = 30 * 86_400.0


class Journal:
    """The outbox of this process; safe to call from any thread."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})
        self.pid = os.getpid()
        self.destinations = destinations(self.config)
        self.folder = _folder(",".join(sorted(d.name for d in self.destinations)))
        self.path, self.outbox = self._own()
        self._order = itertools.count(1)
        self._sender = Sender(self.outbox, self.destinations, longest=5.0)
        self._sender.start()
        self._closed = threading.Event()
        threading.Thread(target=self._adopt, daemon=True, name="headwater-adopt").start()

    def _own(self) -> tuple[Path, Outbox]:
        while True:
            path = self.folder / f"{time.time_ns():x}-{os.getpid()}-{secrets.token_hex(3)}.db"
            outbox = Outbox(str(path))
            # A process that looks for what others left may take the file before we hold it.
            if outbox.lead():
                return path, outbox

    def begin(self, run_id: str, body: Mapping[str, Any]) -> str:
        """Open a run with its first event; the key is for the calls that follow."""
        key = f"{OPEN}{next(self._order):09d}:{run_id}"
        self.tell(key, run_id, body)
        return key

    def tell(self, key: str, run_id: str, body: Mapping[str, Any]) -> None:
        """One more event of an open run."""
        raw = event.encode(body)
        with self.outbox.transaction() as step:
            step.append(run_id, raw)
            step.put(key, raw)

    def end(self, key: str, run_id: str, body: Mapping[str, Any]) -> None:
        """The last event of a run."""
        with self.outbox.transaction() as step:
            step.append(run_id, event.encode(body))
            step.remove(key)

    def flush(self, seconds: float) -> bool:
        """Wait until everything has arrived, at most so long."""
        return self.outbox.drained(seconds)

    def close(self, seconds: float) -> bool:
        """Send what is left within a bound; False if something, or an open run, is still there."""
        if self._closed.is_set() or os.getpid() != self.pid:
            return True
        self._closed.set()
        empty = self._sender.stop(flush=seconds)
        settled = empty and not self.outbox.state(OPEN)
        self.outbox.forget_connection()
        self.outbox.close()
        if settled:
            remove(self.path)
        return settled

    @once.quiet("sending what an earlier process left")
    def _adopt(self) -> None:
        for path in sorted(self.folder.glob("*.db")):
            if self._closed.is_set():
                return
            if path != self.path:
                settle(path, self.config, ADOPT_SECONDS, "inferred")


def settle(path: Path, config: Mapping[str, Any], seconds: float, reason: str) -> bool:
    """End what a process that is gone left open and send the rest; False while it lives."""
    if not path.exists():
        return True
    outbox = Outbox(str(path))
    seen = _last_written(path)
    if not outbox.lead():
        return False
    moment = seen if reason == "inferred" else event.now()
    try:
        with outbox.transaction() as step:
            for key, raw in sorted(outbox.state(OPEN).items(), reverse=True):
                body = abort(msgspec.json.decode(raw), moment, reason)
                step.append(body["run"]["runId"], event.encode(body))
                step.remove(key)
        sender = Sender(outbox, destinations(config), longest=2.0)
        sender.start()
        empty = sender.stop(flush=seconds)
    finally:
        outbox.forget_connection()
        outbox.close()
    if empty or time.time() - seen > KEPT_SECONDS:
        remove(path)
    return True


def abort(body: dict[str, Any], moment: float, reason: str) -> dict[str, Any]:
    """The ABORT of a run whose process cannot say it any more."""
    body["eventType"] = EventType.ABORT.value
    body["eventTime"] = event.stamp(max(moment, _moment(body["eventTime"])))
    body["run"]["facets"]["headwater_end"] = event.facet(
        "headwater_end", reason=reason, inferred=reason == "inferred"
    )
    return body


def remove(path: Path) -> None:
    """Delete an outbox and the files beside it."""
    for suffix in ("", "-wal", "-shm", ".lock"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _moment(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def _last_written(path: Path) -> float:
    files = (path, path.with_name(path.name + "-wal"))
    return max((file.stat().st_mtime for file in files if file.exists()), default=time.time())


def _folder(names: str) -> Path:
    """`HEADWATER_STATE_DIR`, else a folder of the user's for these destinations."""
    given = os.environ.get("HEADWATER_STATE_DIR")
    if given:
        return _made(Path(given).expanduser() / "outbox")
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    digest = hashlib.sha256(names.encode()).hexdigest()[:12]
    return _made(Path(base) / "headwater" / "outbox" / digest)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / f".{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        other = Path(tempfile.mkdtemp(prefix="headwater-"))
        once.report(f"keeping state in {folder}, so it is kept in {other}; this", error)
        return other
    return folder
