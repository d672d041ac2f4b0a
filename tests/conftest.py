"""Fixtures for every test: the real stack comes from the package's own plug-in."""

pytest_plugins = ["headwater.lab.pytest"]
