"""The Marquez-compatible API, a thin presenter over the store."""

from headwater.server.api.v1 import beta, lineage, lists, runs, search, versions, writes

__all__ = ["MODULES"]

MODULES = (lineage, runs, search, lists, versions, beta, writes)
