"""How events, samples and another server's history get into the store, and what runs beside it."""
