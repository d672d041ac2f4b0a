"""Questions that many rows answer: the graph, columns, evidence, history."""
