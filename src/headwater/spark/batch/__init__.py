"""Batch actions: which Python call each execution of Spark belongs to, and the run it is."""
