"""Spark Connect: lineage from a client without a JVM.

The client's own messages show what is done; the server's explain text shows how, with the same
attribute numbers as the plan. `explain/` parses these texts into the trees that plans of a JVM become
too, so that one set of column rules reads both. What a text leaves out is reported as unknown.
"""
