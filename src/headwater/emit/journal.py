"""What one process emits: an outbox of its own and the runs it has open.

Each run that is open is kept with the event that would end it, in the same transaction as its
events. Whoever finds the process gone, its watchdog or the next process with the same destinations,
ends those runs and sends what is left. What an outbox holds goes to the destinations recorded in it
and to no other, whoever sends it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import secrets
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.emit import internal_errors
from headwater.emit.destinations import destinations
from headwater.emit.outbox import Outbox, OutboxChange
from headwater.emit.sender import Sender
from headwater.lineage.model import End
from headwater.lineage.openlineage.events import EventType
from headwater.lineage.openlineage.writer import Writer, encode, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OPEN = "run:"
OUTBOXES = "outbox"
ADOPT_SECONDS = 60.0
# Events that a destination refused outlive the outbox of the process that emitted them.
REFUSED_FILE = "refused.db"


class Journal:
    """The outbox of this process; safe to call from any thread."""

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        self.config = dict(config or {})
        self.pid = os.getpid()
        self.destinations = destinations(self.config)
        self.folder = _folder(d.name for d in self.destinations)
        self.path, self.outbox = self._own()
        self.outbox.register({d.name: d.shown for d in self.destinations})
        self._order = itertools.count(1)
        self._sender = Sender(self.outbox, self.destinations, longest=5.0)
        self._sender.start()
        self._closed = threading.Event()
        threading.Thread(target=self._adopt, daemon=True, name="headwater-adopt").start()

    @property
    def of_this_process(self) -> bool:
        """Whether this process opened it; what a parent has open, a forked child leaves alone."""
        return os.getpid() == self.pid

    def _own(self) -> tuple[Path, Outbox]:
        while True:
            path = self.folder / f"{time.time_ns():x}-{os.getpid()}-{secrets.token_hex(3)}.db"
            outbox = Outbox(str(path))
            if outbox.lead():
                return path, outbox

    def begin(self, run_id: str, body: Mapping[str, Any]) -> str:
        """Open a run with its first event; the key is for the calls that follow."""
        key = f"{OPEN}{next(self._order):09d}:{run_id}"
        self.emit(key, run_id, body)
        return key

    def emit(self, key: str, run_id: str, body: Mapping[str, Any]) -> None:
        """One more event of an open run."""
        raw = encode(body)
        self.outbox.commit([OutboxChange(key, raw, [(run_id, raw)])])

    def end(self, key: str, run_id: str, body: Mapping[str, Any]) -> None:
        """The last event of a run."""
        self.outbox.commit([OutboxChange(key, None, [(run_id, encode(body))])])

    def flush(self, seconds: float) -> bool:
        """Wait until everything has arrived, at most so long."""
        return self.outbox.drained(seconds)

    def close(self, seconds: float) -> bool:
        """Send what is left within a bound; False if something, or an open run, is still there."""
        if self._closed.is_set() or not self.of_this_process:
            return True
        self._closed.set()
        self._sender.stop(flush=seconds)
        done = _is_done(self.outbox)
        _put_away(self.path, self.outbox, done)
        return done

    @internal_errors.log_and_ignore("sending what an earlier process left")
    def _adopt(self) -> None:
        paths = sorted(self.folder.glob("*.db"))
        if self.folder.parent.name == OUTBOXES:
            # Earlier versions kept the outboxes of all destinations side by side.
            paths += sorted(self.folder.parent.glob("*.db"))
        for path in paths:
            if self._closed.is_set():
                return
            if path != self.path:
                settle(path, self.config, ADOPT_SECONDS, "inferred")


def settle(path: Path, config: Mapping[str, Any], seconds: float, reason: str) -> bool:
    """End what a process that is gone left open and send the rest; False while it lives.

    Only to destinations that are recorded in the outbox and that `config` names too; an outbox
    that has none of them is left as it is.
    """
    if not path.exists():
        return True
    with untouched(path) as written:
        return _settle(path, config, seconds, reason, written)


def _settle(
    path: Path, config: Mapping[str, Any], seconds: float, reason: str, written: float
) -> bool:
    outbox = Outbox(str(path))
    if not outbox.lead(create=False):
        return False
    done = False
    try:
        recorded = outbox.destinations()
        ours = [one for one in destinations(config) if one.name in recorded]
        if ours:
            _end_open_runs(outbox, written if reason == "inferred" else time.time(), reason)
            sender = Sender(outbox, ours, longest=2.0)
            sender.start()
            sender.stop(flush=seconds)
        done = _is_done(outbox)
    finally:
        _put_away(path, outbox, done)
    return True


@contextmanager
def untouched(path: Path) -> Iterator[float]:
    """Keep the time an outbox was last written, which stands for when its process was alive."""
    written = _last_written(path)
    try:
        yield written
    finally:
        with suppress(OSError):
            os.utime(path, (written, written))


def _end_open_runs(outbox: Outbox, moment: float, reason: str) -> None:
    changes = []
    for key, raw in sorted(outbox.state(OPEN).items(), reverse=True):
        body = abort(msgspec.json.decode(raw), moment, reason)
        changes.append(OutboxChange(key, None, [(body["run"]["runId"], encode(body))]))
    outbox.commit(changes)


def _is_done(outbox: Outbox) -> bool:
    return not outbox.waiting() and not outbox.state(OPEN)


def _put_away(path: Path, outbox: Outbox, done: bool) -> None:
    """Close an outbox; one that is done leaves nothing but the events that were refused."""
    done = done and path.name != REFUSED_FILE
    refused = outbox.refused() if done else []
    if refused:
        shared = Outbox(str(path.with_name(REFUSED_FILE)))
        shared.keep_refused(outbox.destinations(), refused)
        shared.forget_connection()
    outbox.forget_connection()
    outbox.close((lambda: remove(path)) if done else None)


def abort(body: dict[str, Any], moment: float, reason: str) -> dict[str, Any]:
    """The ABORT of a run whose process is gone."""
    body["eventType"] = EventType.ABORT.value
    known = datetime.fromisoformat(body["eventTime"].replace("Z", "+00:00"))
    body["eventTime"] = stamp(max(datetime.fromtimestamp(moment, timezone.utc), known))
    end = End(reason, inferred=reason == "inferred")
    body["run"]["facets"]["headwater_end"] = Writer(body["producer"]).end_facet(end)
    return body


def remove(path: Path) -> None:
    """Delete an outbox and the files beside it."""
    for suffix in ("", "-wal", "-shm", ".lock"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _last_written(path: Path) -> float:
    files = (path, path.with_name(path.name + "-wal"))
    return max((file.stat().st_mtime for file in files if file.exists()), default=time.time())


def state_folder() -> Path:
    """`HEADWATER_STATE_DIR`, else the user's folder for state."""
    given = os.environ.get("HEADWATER_STATE_DIR")
    if given:
        return Path(given).expanduser()
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "headwater"


def _folder(names: Iterable[str]) -> Path:
    """The folder of the outboxes for these destinations."""
    digest = hashlib.sha256(",".join(sorted(names)).encode()).hexdigest()[:12]
    return _made(state_folder() / OUTBOXES / digest)


def _made(folder: Path) -> Path:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = folder / f".{secrets.token_hex(4)}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        other = Path(tempfile.mkdtemp(prefix="headwater-"))
        internal_errors.report(f"keeping state in {folder} (using {other} instead)", error)
        return other
    return folder
