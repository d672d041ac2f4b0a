"""`headwater demo`: the pipeline on a lab of its own, watched live."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.table import Table

from headwater.cli.output import AsJson, FetchBar, err, is_interactive, out, print_json, state
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.lab.demo import Demo, Seen

STAGES = {
    "database": "PostgreSQL  shop.public.orders",
    "topic": "Kafka       orders (Avro)",
    "table": "Iceberg     default.orders_landing",
}
VERIFY_SECONDS = 120.0
FIRST_ORDERS = 25


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End when every order was seen at every stage.")
    ] = False,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="The demo's folder.  [default: a temporary one]"),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", min=0.1, help="Orders a second.")] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Start the lab, let customers order, and show the orders at every stage. Ctrl-C ends it."""
    import tempfile

    from headwater.lab.demo import Demo
    from headwater.lab.lab import Lab

    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        lab = Lab(home or Path(folder, "lab"))
        began = time.monotonic()

        def changed(service: str, to: str) -> None:
            err.print(f"{time.monotonic() - began:5.1f} s  {service:<20} {state(to)}")

        try:
            with FetchBar() as progress:
                lab.up(progress=progress, changed=changed)
            shop = Demo(lab)
            shop.prepare()
            changed("orders-source", "running")
            changed("orders-iceberg-sink", "running")
            shop.order(FIRST_ORDERS)
            seen = _until_complete(shop)
            if as_json:
                print_json({"ok": seen.complete, **seen._asdict()})
            else:
                out.print(_table(seen))
            if not seen.complete:
                raise HeadwaterError(
                    f"not every order arrived within {VERIFY_SECONDS:.0f} s",
                    hint="look into the connectors: headwater lab logs connect",
                )
            if not once:
                _stay(shop, rate)
        except KeyboardInterrupt:
            pass
        finally:
            err.print("stopping the lab")
            lab.down() if home else lab.reset()


def _until_complete(shop: Demo) -> Seen:
    deadline = time.monotonic() + VERIFY_SECONDS
    while not (seen := shop.look()).complete and time.monotonic() < deadline:
        time.sleep(0.5)
    return seen


def _stay(shop: Demo, rate: float) -> None:
    for name, address in shop.addresses().items():
        out.print(f"{name:<9} [cyan]{address}[/]", soft_wrap=True)
    out.print("Orders go on until Ctrl-C.")
    if not is_interactive():
        while True:
            shop.order()
            time.sleep(1 / rate)
    with Live(_table(shop.look()), console=out, refresh_per_second=2) as live:
        while True:
            shop.order()
            live.update(_table(shop.look()))
            time.sleep(1 / rate)


def _table(seen: Seen) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("stage")
    table.add_column("orders", justify="right")
    table.add_column("")
    for stage, count in seen._asdict().items():
        arrived = 0 < seen.database <= count
        table.add_row(STAGES[stage], f"{count:,}", "[green]✓[/]" if arrived else "[yellow]…[/]")
    return table
