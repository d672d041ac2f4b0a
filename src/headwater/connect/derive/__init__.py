"""How a connector's configuration and the metadata around it become lineage."""
