"""Fixtures for every test: the real stack comes from the package's own plug-in."""

import signal

pytest_plugins = ["headwater.lab.pytest"]

# A shell starts what it runs in the background deaf to Ctrl-C, and children inherit that: the tests
# that interrupt a command would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
