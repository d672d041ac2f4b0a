"""`headwater mcp`: lineage questions as tools for AI assistants."""

from headwater.cli.assistant.command import mcp

__all__ = ["mcp"]
