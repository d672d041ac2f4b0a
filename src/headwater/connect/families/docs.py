"""The published table of connectors, made from the families themselves."""

from __future__ import annotations

from headwater.connect.families import BUILT_IN

__all__ = ["connectors"]


def connectors() -> str:
    """Every plug-in as Markdown: its family, its classes, where it stands, the keys that are read."""
    lines = ["| family | connector | type | outside Kafka | keys read |", "|---|---|---|---|---|"]
    for plugin in BUILT_IN:
        names = "<br>".join(f"`{name}`" for name in plugin.classes if not name.endswith("*"))
        keys = ", ".join(f"`{key}`" for key in dict.fromkeys(plugin.keys))
        cells = (plugin.family, names, plugin.role, plugin.stores, keys)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
