"""What the command line asks of connectors without an agent: list, preview and apply."""
