"""Streaming queries: one run for each start of a query, its progress and its flow samples."""
