"""Events on their way into the store: read, checked, and taken apart."""
