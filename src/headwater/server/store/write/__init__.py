"""From events and changes made by hand to rows: the one writer's side of the store."""
