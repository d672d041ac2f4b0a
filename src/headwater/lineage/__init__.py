"""What lineage is: events, names, schemas, columns, life cycle and graph, without any I/O."""
