"""Live, end-to-end data lineage for streaming estates."""

__version__ = "0.1.0"
