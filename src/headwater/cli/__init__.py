"""The one command, `headwater`."""
