"""Live, end-to-end data lineage for streaming estates."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwater.emit.run import run as run

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "run":
        from headwater.emit.run import run

        return run
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
