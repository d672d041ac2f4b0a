"""How this process ends, and what that makes of the runs it has open.

An exit code cannot be read at exit, so `sys.exit` is wrapped; a signal must be noticed before the
exceptions it causes are taken for failures, so its handler is wrapped too. Handlers and hooks that
were there before are called as if nothing had been added.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import sys
import threading
import time
import traceback
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from headwater.emit import internal_errors
from headwater.lineage.naming import redact
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType

SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP")
MEMORY_SECONDS = 15.0


class RunEnd(NamedTuple):
    """What ends a run: the event, the reason in short, and for a failure its message and trace.

    `by` is the user whose program was interrupted.
    """

    type: EventType
    reason: str
    message: str = ""
    stack_trace: str = ""
    by: str = ""


COMPLETE = RunEnd(EventType.COMPLETE, "finished")
TRACES: list[Callable[[BaseException], str]] = []
"""What finds a trace inside an exception that Python does not show, such as a JVM's."""
MESSAGE_FILTERS: list[Callable[[str], str]] = []
"""Filters that remove text from failure messages and traces, beside the masking of credentials."""


def of_exception(error: BaseException | None) -> RunEnd:
    """What an exception on its way out makes of a run."""
    if error is None:
        return COMPLETE
    if isinstance(error, KeyboardInterrupt):
        return interrupted("interrupted")
    if isinstance(error, SystemExit):
        return of_exit(error.code)
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    hidden = [text for find in TRACES if (text := find(error)) and text not in trace]
    trace = "\n".join([trace, *hidden])
    return failed("exception", _first(error), trace)


def interrupted(reason: str) -> RunEnd:
    """The end of a program that a signal or Ctrl-C interrupted, by the user that it runs as."""
    return RunEnd(EventType.ABORT, reason, by=user())


@functools.cache
def user() -> str:
    """The name of the user this process runs as; empty where the system has no name for it."""
    # Not `getpass.getuser`, which believes variables of the environment.
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, OSError):
        return ""


def failed(reason: str, message: str, trace: str) -> RunEnd:
    """A failure, its texts filtered and its credentials masked."""
    for wording in MESSAGE_FILTERS:
        message, trace = wording(message), wording(trace)
    return RunEnd(EventType.FAIL, reason, redact(message), redact(trace))


def of_exit(code: object) -> RunEnd:
    """What an exit code makes of a run."""
    if code is None or code == 0:
        return COMPLETE
    shown = code if isinstance(code, int) else f"1: {code}"
    return RunEnd(EventType.FAIL, "exit code", redact(f"the process ended with exit code {shown}"))


def _first(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


class ProcessExit:
    """The one observer of this process's end."""

    def __init__(self) -> None:
        self._finishers: list[Callable[[RunEnd], None]] = []
        self._signal: tuple[int, float] | None = None
        self._exception: BaseException | None = None
        self._code: object = None
        self._installed = False
        self._done = False

    def watch(self, finish: Callable[[RunEnd], None]) -> None:
        """Call `finish` once when the process ends; the latest is called first."""
        self._install()
        self._finishers.append(finish)

    def forget(self, finish: Callable[[RunEnd], None]) -> None:
        """Do not call it any more."""
        with contextlib.suppress(ValueError):
            self._finishers.remove(finish)

    def alive(self) -> None:
        """New work begins, so an exit or interrupt that was seen before did not end the process."""
        if threading.current_thread() is threading.main_thread():
            self._code = None
            if hasattr(sys, "ps1"):
                # In a shell an exception ends one command, too.
                self._exception = None

    @property
    def signalled(self) -> str:
        """The signal that is ending this process, if one is."""
        if self._signal is None:
            return ""
        number, at = self._signal
        # In a shell or notebook an interrupt ends one command, not the session.
        if hasattr(sys, "ps1") and time.monotonic() - at > MEMORY_SECONDS:
            return ""
        return signal.Signals(number).name

    @property
    def now(self) -> RunEnd:
        """The end this process would have if it ended now."""
        if self.signalled:
            return interrupted(f"signal {self.signalled}")
        if self._exception is not None:
            return of_exception(self._exception)
        return of_exit(self._code)

    def of(self, error: BaseException | None) -> RunEnd:
        """What an exception makes of the work it ended: one that a signal caused is no failure."""
        return self.now if self.signalled and error is not None else of_exception(error)

    def program_ended(self, error: BaseException | None) -> None:
        """A launcher saw the program end so."""
        if isinstance(error, SystemExit):
            self._code = error.code
        else:
            self._exception = error

    def finish(self, ending: RunEnd | None = None) -> None:
        """Call every finisher, once."""
        if self._done:
            return
        self._done = True
        end = ending or self.now
        for finish in reversed(list(self._finishers)):
            try:
                finish(end)
            except Exception as error:  # noqa: BLE001
                internal_errors.report("ending open runs", error)
        self._finishers.clear()

    def _install(self) -> None:
        if self._installed:
            return
        self._installed = True
        atexit.register(self.finish)
        os.register_at_fork(after_in_child=self._forget_all)
        self._wrap_hook()
        self._wrap_exit()
        if threading.current_thread() is threading.main_thread():
            for name in SIGNALS:
                self._wrap_signal(getattr(signal, name))

    def _forget_all(self) -> None:
        # What the parent has open is the parent's; a child may begin something of its own.
        self._finishers.clear()
        self._signal = self._exception = self._code = None
        self._done = False

    def _wrap_hook(self) -> None:
        before = sys.excepthook

        def hook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            self._exception = error
            before(kind, error, trace)

        sys.excepthook = hook

    def _wrap_exit(self) -> None:
        before = sys.exit

        def leave(status: Any = None, /) -> NoReturn:
            if threading.current_thread() is threading.main_thread():
                self._code = status
            before(status)

        sys.exit = leave

    def _wrap_signal(self, number: int) -> None:
        before = signal.getsignal(number)
        if before is None or before is signal.SIG_IGN:
            return

        def handle(received: int, frame: FrameType | None) -> None:
            self._signal = (received, time.monotonic())
            if callable(before):
                before(received, frame)
                return
            self.finish()
            signal.signal(received, signal.SIG_DFL)
            os.kill(os.getpid(), received)

        signal.signal(number, handle)


PROCESS_EXIT = ProcessExit()
