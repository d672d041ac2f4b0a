"""Fixtures for every test: the real stack comes from the package's own plug-in."""

import gc
import os
import signal
import socketserver
from functools import cache
from importlib import import_module

from hypothesis import settings

from headwater.lab.files.class_archive import archive_options

from .properties import examples

pytest_plugins = ["headwater.lab.pytest"]

# A shell starts what it runs in the background deaf to Ctrl-C, and `nohup` to the end of a terminal;
# children inherit both, and the tests that send these signals would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Every Spark driver that a test starts loads its classes from the archive, where there is one.
os.environ["SPARK_SUBMIT_OPTS"] = " ".join(archive_options())

settings.register_profile("headwater", examples(100))
settings.load_profile("headwater")

# A client reads the certificates of all authorities, 20 ms of CPU, even to ask a server by plain HTTP.
# Thousands of clients are made here: they share one context.
transports = import_module("httpx._transports.default")
transports.create_ssl_context = cache(transports.create_ssl_context)  # type: ignore[attr-defined]

# httpx gives an answer five seconds, which a server on a loaded machine exceeds.
patience = import_module("httpx._config").DEFAULT_TIMEOUT_CONFIG
patience.connect = patience.read = patience.write = patience.pool = 60.0

# A call of the program in this process first makes its hundred commands, 50 ms of CPU: they are made once.
programs = import_module("typer.main")
programs.get_command = cache(programs.get_command)  # type: ignore[attr-defined]

# A server of the standard library looks twice a second whether it is to stop; hundreds are stopped here.
socketserver.BaseServer.serve_forever.__defaults__ = (0.02,)


def pytest_collection_finish() -> None:
    """Keep the collector from visiting the modules and the collected tests again and again."""
    gc.collect()
    gc.freeze()
