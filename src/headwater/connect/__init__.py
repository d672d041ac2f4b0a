"""Kafka Connect watched from outside: every connector's life and lineage as OpenLineage."""
