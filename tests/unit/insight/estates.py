"""Generated estates with datasets under two names among datasets that only look alike."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.insight import ClockGap, DoubtKind, JobUse, KnownDataset, KnownJob

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

Named = tuple[str, str]
WORDS = [
    "orders", "customers", "payments", "shipments", "invoices", "clicks", "sessions", "refunds",
    "carts", "stock", "prices", "items", "suppliers", "returns", "tickets", "users", "events",
    "ledger", "quotes", "leads",
]  # fmt: skip


@dataclass
class MemoryEstate:
    """An estate in memory: nodes are the names themselves."""

    columns_of: dict[Named, frozenset[str]] = field(default_factory=dict)
    used: list[JobUse] = field(default_factory=list)
    links: dict[Named, frozenset[Named]] = field(default_factory=dict)
    cluster_of: dict[str, str] = field(default_factory=dict)
    file_of: dict[Named, Named] = field(default_factory=dict)
    likely_file_of: dict[Named, Named] = field(default_factory=dict)
    unmet: list[tuple[Named, str]] = field(default_factory=list)
    known_jobs: list[KnownJob[Named]] = field(default_factory=list)
    gaps: list[ClockGap[Named]] = field(default_factory=list)
    counted: list[tuple[DoubtKind, str, int]] = field(default_factory=list)

    def add(
        self, named: Named, columns: Iterable[str] = (), *, writers: str = "", readers: str = ""
    ) -> None:
        self.columns_of[named] = frozenset(columns)
        self.used += [JobUse(job, named, writes=True) for job in writers.split()]
        self.used += [JobUse(job, named, writes=False) for job in readers.split()]

    def datasets(self) -> list[KnownDataset[Named]]:
        return [KnownDataset(named, *named) for named in self.columns_of]

    def uses(self) -> list[JobUse]:
        return self.used

    def columns(self, nodes: Collection[Named]) -> dict[Named, frozenset[str]]:
        return {node: self.columns_of[node] for node in nodes}

    def symlinks(self, nodes: Collection[Named]) -> dict[Named, frozenset[Named]]:
        return {node: self.links[node] for node in nodes if node in self.links}

    def clusters(self) -> dict[str, str]:
        return self.cluster_of

    def files(self) -> dict[Named, Named]:
        return self.file_of

    def likely_files(self) -> dict[Named, Named]:
        return self.likely_file_of

    def external(self) -> list[tuple[Named, str]]:
        return self.unmet

    def jobs(self) -> list[KnownJob[Named]]:
        return self.known_jobs

    def disagreements(self) -> list[tuple[Named, str, int]]:
        return []

    def clocks(self) -> list[ClockGap[Named]]:
        return self.gaps

    def counters(self) -> list[tuple[DoubtKind, str, int]]:
        return self.counted


def planted(n: int, t: str) -> tuple[Named, Named]:
    """One dataset under two names; each number is another way to get them."""
    d = f"shop{n}"
    return [
        (("kafka://localhost:9092", t), ("kafka://127.0.0.1:9092", t)),
        (("kafka://10.0.0.5:9092", t), ("kafka://broker.corp.example:9092", t)),
        (("kafka://localhost:9092", t), (f"kafka://box{n}.corp.example:9092", t)),
        (("kafka://broker-1.corp.example:9092", t), ("kafka://broker-2.corp.example:9092", t)),
        (("kafka://k.corp.example:9092", t), ("kafka://k.corp.example:29092", t)),
        (("s3a://lake", f"raw/{t}"), ("s3://lake", f"raw/{t}")),
        (("s3://lake", f"raw/{d}/{t}/"), ("s3://lake", f"raw/{d}/{t}")),
        (("snowflake://acme", f"SHOP.PUBLIC.{t.upper()}"), ("snowflake://acme", f"shop.public.{t}")),
        (("kafka://broker.corp.example:9092", t.title()), ("kafka://broker.corp.example:9092", t)),
        (("hive://metastore:9083", f"{d}.{t}"), ("s3://warehouse", f"{d}.db/{t}")),
        (("arn:aws:glue:eu-west-1:123456789012", f"table/{d}/{t}"), ("s3://warehouse", f"{d}/{t}")),
        (("hive://metastore:9083", f"default.{t}"), ("s3://warehouse", t)),
        (("s3://warehouse", f"default.db/{t}"), ("s3://warehouse", f"default/{t}")),
        (("postgres://db.corp.example", f"shop.public.{t}"),
         ("postgres://db.corp.example:5432", f"shop.public.{t}")),
        (("hive://metastore", f"{d}.{t}"), ("hive://metastore:9083", f"{d}.{t}")),
        (("postgres://db:5432", f"shop.public.{t}"),
         ("postgres://db.corp.example:5432", f"shop.public.{t}")),
        (("mysql://store1:3306", f"shop.{t}"), ("mysql://store1.eu.corp.example:3306", f"shop.{t}")),
        (("s3://lake", f"in/{t}"), ("s3://lake.s3.eu-west-1.amazonaws.com", f"in/{t}")),
        (("s3://lake", f"out/{t}"), ("https://s3.eu-west-1.amazonaws.com", f"/lake/out/{t}")),
        (("postgres://shop.cluster-abc123.eu-west-1.rds.amazonaws.com:5432", f"shop.public.{t}"),
         ("postgres://shop.cluster-ro-abc123.eu-west-1.rds.amazonaws.com:5432", f"shop.public.{t}")),
        (("redshift://dw.abc123.eu-west-1.redshift.amazonaws.com:5439", f"dw.public.{t}"),
         ("redshift://dw.eu-west-1:5439", f"dw.public.{t}")),
        (("mysql://sales.eu-west-1:3306", f"shop.{t}"),
         ("mysql://sales.xyz789.eu-west-1.rds.amazonaws.com:3306", f"shop.{t}")),
        (("kinesis://eu-west-1", t), ("arn:aws:kinesis:eu-west-1:123456789012", f"stream/{t}")),
        (("dynamodb://dynamodb.eu-west-1.amazonaws.com", t), ("dynamodb://eu-west-1", t)),
        (("wasbs://raw@acme.dfs.core.windows.net", t), ("abfss://raw@acme.dfs.core.windows.net", t)),
    ][n % KINDS]  # fmt: skip


KINDS = 25


def decoys(n: int, t: str) -> tuple[Named, Named]:
    """Two datasets that look alike and are not one."""
    return [
        (("kafka://kafka-dev.corp.example:9092", t), ("kafka://kafka-prod.corp.example:9092", t)),
        (("postgres://db.dev.example:5432", f"shop.public.{t}"),
         ("postgres://db.prod.example:5432", f"shop.public.{t}")),
        (("s3://lake-dev", f"shop/{t}"), ("s3://lake-prod", f"shop/{t}")),
        (("s3://lake", f"dev/{t}"), ("s3://lake", f"prod/{t}")),
        (("kafka://10.9.0.1:9092", t), ("kafka://kafka-prod2.corp.example:9092", t)),
        (("postgres://ledger:5432", f"shop.public.{t}_2024"), ("postgres://ledger:5432", f"shop.public.{t}_2025")),
        (("s3://lake", f"{t}/2024"), ("s3://lake", f"{t}/2025")),
        (("mysql://store:3306", f"shop.{t}_1"), ("mysql://store:3306", f"shop.{t}_2")),
        (("mysql://shard-1.example:3306", f"shop.{t}"), ("mysql://shard-2.example:3306", f"shop.{t}")),
        (("postgres://10.1.0.1:5432", f"ops.public.{t}"), ("postgres://10.1.0.2:5432", f"ops.public.{t}")),
        (("postgres://ledger:5432", f"shop.public.{t}"), ("postgres://ledger:5432", f"shop.public.{t}_copy")),
        (("s3://lake", f"c/{t}"), ("s3://lake", f"c/{t}_bak")),
        (("postgres://shop.abc111.eu-west-1.rds.amazonaws.com:5432", f"shop.public.{t}"),
         ("postgres://shop.def222.eu-west-1.rds.amazonaws.com:5432", f"shop.public.{t}")),
        (("arn:aws:kinesis:eu-west-1:111111111111", f"stream/{t}"),
         ("arn:aws:kinesis:eu-west-1:222222222222", f"stream/{t}")),
        (("dynamodb://eu-west-1", t), ("dynamodb://us-east-1", t)),
        (("s3://bucket-a", f"tables/{t}"), ("s3://bucket-b", f"tables/{t}")),
        (("postgres://ledger:5432", f"a.public.{t}"), ("postgres://ledger:5432", f"b.public.{t}")),
        (("kafka://east-1.example:9092", t), ("kafka://west-1.example:9092", t)),
        (("postgres://10.2.0.1:5432", f"crm.public.{t}"),
         ("postgres://replica.example:5432", f"crm.public.{t}")),
    ][n % DECOYS]  # fmt: skip


REPLICA = 18
KIN = {0, 1, 2, 3, 5, 6, 7, 8, 10, 11}
DECOYS = 19


def planted_estate(
    datasets: int = 5_000, pairs: int = 50, seed: int = 1
) -> tuple[MemoryEstate, set[frozenset[Named]]]:
    """An estate of so many datasets in which so many pairs are one, and which those are."""
    draw = random.Random(seed)
    estate, truth = MemoryEstate(), set()

    def word(n: int) -> str:
        return (
            f"{draw.choice(WORDS)}_{draw.choice(WORDS)}{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}"
        )

    def columns() -> list[str]:
        return ["id", *draw.sample(WORDS, draw.randint(2, 8))]

    names: list[tuple[str, list[str]]] = []
    for n in range(pairs):
        names.append((f"p{word(n)}", columns()))
        one, two = planted(n, names[-1][0])
        # Some are read under their own name as well.
        estate.add(one, names[-1][1], writers=f"w{n}", readers=f"o{n}" if n % 5 == 0 else "")
        estate.add(two, names[-1][1], readers=f"r{n} q{n}")
        truth.add(frozenset((one, two)))
    n = 0
    while len(estate.columns_of) < datasets * 0.8:
        n += 1
        # Other environments, years, shards and copies also have the names that are planted.
        again = n % 3 == 0 and n % DECOYS in KIN
        text, same = names[n // 3 % pairs] if again else (f"d{word(n)}{n}", columns())
        one, two = decoys(n, text)
        if one in estate.columns_of or two in estate.columns_of:
            continue
        if n % DECOYS == REPLICA:  # a topic carries the rows from one to the other
            estate.add(one, same, readers=f"cdc{n}")
            estate.add(two, same, writers=f"sink{n}")
            estate.add(("kafka://broker.corp.example:9092", f"cdc.{text}"), same,
                       writers=f"cdc{n}", readers=f"sink{n}")  # fmt: skip
            continue
        # The worst decoys: the same columns, one only written and the other only read.
        alone = draw.random() < 0.5
        estate.add(one, same, writers=f"dw{n}", readers="" if alone else f"dr{n}")
        estate.add(
            two, same, readers=f"er{n}", writers=draw.choice(("", "" if alone else f"ew{n}"))
        )
    while len(estate.columns_of) < datasets:
        n += 1
        store = draw.choice(("postgres://db:5432", "s3://lake", "kafka://broker.corp.example:9092"))
        estate.add((store, f"{word(n)}{n}"), columns(), writers=f"w{n}", readers=f"x{n}")
    return estate, truth
