"""Unattributed readers: the consumer groups that no connector and no Spark job accounts for."""
