"""Connectors that report themselves: one job, one run, whoever reports it.

Debezium does so by `openlineage.integration.*`, any other by a lineage transform in its chain.
"""
