"""The backend: takes events in, keeps them, answers questions about the graph."""
