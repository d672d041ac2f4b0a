"""Spark Connect: lineage from a client without a JVM.

The client's own commands say what is done; the server's explain text says how, with the same numbers
for attributes as the plan has. Texts become the same trees that plans of a JVM become, so that one
set of rules reads both. What a text leaves out is said to be unknown.
"""
