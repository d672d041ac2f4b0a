"""Fixtures for every test: the real stack comes from the package's own plug-in."""

import signal

from hypothesis import settings

from .properties import examples

pytest_plugins = ["headwater.lab.pytest"]

# A shell starts what it runs in the background deaf to Ctrl-C, and `nohup` to the end of a terminal;
# children inherit both, and the tests that send these signals would wait in vain.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

settings.register_profile("headwater", examples(100))
settings.load_profile("headwater")
