"""Spark's query plans: what they read, what they write, and which columns each node hands on."""
