"""The hash chain of the log: its head, which stands for all before it, and whether it still does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.store.database import StoreError, TamperedError
from headwater.server.store.keep import checkpoint

if TYPE_CHECKING:
    from headwater.server.store.database import ReadConnection

__all__ = ["check_head", "head_of", "link_at"]

Head = tuple[int, bytes]
"""A record, and its link of the chain."""


def head_of(connection: ReadConnection) -> Head:
    """The last record."""
    ((seq, chain),) = connection.all("SELECT seq, chain FROM head WHERE id = 1")
    return int(seq), bytes(chain)


def link_at(connection: ReadConnection, seq: int) -> Head | None:
    """A record that is in the log, or whose link was kept when its body went."""
    for table in ("log", "tombstone"):
        for (chain,) in connection.all(f"SELECT chain FROM {table} WHERE seq = ?", (seq,)):  # noqa: S608
            return seq, bytes(chain)
    found = checkpoint.latest(connection)
    if found is not None and seq == found.base:
        return seq, found.base_chain
    return None


def check_head(connection: ReadConnection, exported: Head) -> None:
    """Check that the log still has, and still as it was, all up to a head that was exported."""
    seq, chain = exported
    last, _ = head_of(connection)
    if seq > last:
        raise TamperedError(
            f"the log was cut: it ends at record {last}, and had {seq} when the head was exported",
            hint="or an older backup was restored",
        )
    if seq == 0:
        return
    found = link_at(connection, seq)
    if found is None:
        kept = checkpoint.latest(connection)
        if kept is not None and seq < kept.base:
            raise StoreError(
                f"the head of record {seq} cannot be checked: the log is kept from"
                f" record {kept.base + 1} on",
                hint="export a head after each deletion of old events",
            )
        raise TamperedError(f"the log was changed: record {seq} is missing")
    if found[1] != chain:
        raise TamperedError(
            f"the log was rewritten: record {seq} is not the one whose head was exported"
        )
