"""`headwater lab traffic`: customers for the shop."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from headwater.cli.lab.options import Home, open_lab
from headwater.cli.output import AsJson, duration, out, print_json
from headwater.errors import HeadwaterError, UsageError

MOST = 100_000


def traffic(
    home: Home = None,
    rate: Annotated[
        float, typer.Option("--rate", min=0.01, max=MOST, help="Orders a second.")
    ] = 5.0,
    count: Annotated[
        int | None, typer.Option("--count", min=1, help="Stop after this many orders.")
    ] = None,
    late: Annotated[str, typer.Option("--late", help="Share of late orders.")] = "5%",
    bad: Annotated[str, typer.Option("--bad", help="Share of invalid orders.")] = "0.1%",
    as_json: AsJson = False,
) -> None:
    """Write realistic orders and bids into PostgreSQL until Ctrl-C."""
    import psycopg

    from headwater.lab.demo.traffic import OrderMix, OrderRate, OrderTraffic

    found = open_lab(home).env()
    if "POSTGRES_URL" not in found:
        raise UsageError("PostgreSQL was not started", hint="headwater lab up postgres")
    shop = OrderTraffic(found["POSTGRES_URL"], OrderMix(_share(late), _share(bad)))
    sent, began = 0, time.monotonic()
    try:
        shop.prepare()
        pace = OrderRate(rate)
        while count is None or sent < count:
            due = pace.due()
            due = min(due, count - sent) if count is not None else due
            if due:
                shop.send(due)
                sent += due
            time.sleep(pace.interval)
    except KeyboardInterrupt:
        pass
    except psycopg.Error as error:
        text = str(error).strip().partition("\n")[0]
        raise HeadwaterError(
            f"PostgreSQL failed after {sent:,} orders: {text}", hint="headwater lab status"
        ) from error
    if as_json:
        print_json({"orders": sent})
    else:
        out.print(f"{sent:,} orders in {duration(time.monotonic() - began)}")


def _share(text: str) -> float:
    try:
        share = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1
    if not 0 <= share <= 1:
        raise UsageError(f"{text!r} is not a share", hint="for example 5% or 0.05")
    return share
