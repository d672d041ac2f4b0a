"""`headwater mcp`: lineage questions as tools for AI assistants."""

from headwater.cli.mcp.command import mcp

__all__ = ["mcp"]
