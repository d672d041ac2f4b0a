"""The Marquez-compatible API, a thin presenter over the store."""

from headwater.server.api.v1 import lineage, lists, page_search, runs, search, versions, writes

__all__ = ["MODULES"]

MODULES = (lineage, runs, search, lists, versions, page_search, writes)
