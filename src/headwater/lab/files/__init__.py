"""The files that services run from: downloaded through Ivy, pinned by hash, kept in a cache."""
