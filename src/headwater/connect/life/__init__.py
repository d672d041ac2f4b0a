"""The life cycle of a connector's run: its state, and the events that follow from what a poll shows."""
