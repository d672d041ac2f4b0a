"""The lineage lake: every event for years in Iceberg tables, written by Spark and read without it."""
