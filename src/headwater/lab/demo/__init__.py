"""The orders pipeline on a lab: its shop, its jobs, and what lineage must show of it."""
