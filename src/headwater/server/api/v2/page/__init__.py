"""What the web page asks: one bounded answer for each of its views, as JSON that anyone may have."""

from headwater.server.api.v2.page import (
    columns,
    connectors,
    entities,
    lineage_map,
    overview,
    search,
)

__all__ = ["MODULES"]

MODULES = (overview, lineage_map, columns, entities, connectors, search)
