"""The agent: polls Connect clusters, keeps each connector's run, and emits what changed."""
