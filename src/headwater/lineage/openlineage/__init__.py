"""OpenLineage events: from the model to an event, and back, leniently."""
