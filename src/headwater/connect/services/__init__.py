"""Clients of what a connector works with: Connect's REST interface, Kafka, schema registries, Iceberg catalogs."""
