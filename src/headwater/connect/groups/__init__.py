"""Unattributed readers and writers: consumer groups and producers that no connector and no Spark job accounts for."""
