"""What keeps the store in order: retention, purge, checkpoints, rebuilding, runs that went silent."""
