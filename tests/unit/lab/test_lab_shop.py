"""The shop's connectors and customers: what they are given, and what Connect may answer."""

from __future__ import annotations

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.errors import HeadwaterError
from headwater.lab.demo import connectors
from headwater.lab.demo.traffic import OrderRate
from headwater.lab.lab import Lab
from headwater.lab.services.pipeline_streams import programs

if TYPE_CHECKING:
    from collections.abc import Iterator


class Answers(HTTPServer):
    """A worker in the middle of a rebalance, which a real one is only for an instant."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.codes: list[int] = []
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Answers

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.asked.append(self.path)
        self.send_response(self.server.codes.pop(0))
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def connect() -> Iterator[Answers]:
    with Answers() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def _shop(connect: Answers, folder: Path) -> connectors.Shop:
    lab = Lab(folder / "lab")
    with lab.home.created():
        lab.home.settings.ports["connect"] = connect.server_port
        lab.home.save()
    return connectors.Shop(lab.context)


def test_a_worker_that_shares_out_its_work_is_asked_again(connect: Answers, tmp_path: Path) -> None:
    connect.codes = [409, 409, 200]
    _shop(connect, tmp_path).apply("orders-s3-sink")
    assert connect.asked == ["/connectors/orders-s3-sink/config"] * 3


def test_what_a_worker_refuses_is_said(connect: Answers, tmp_path: Path) -> None:
    connect.codes = [400]
    with pytest.raises(HeadwaterError, match="Connect refused /connectors/orders-source/resume"):
        _shop(connect, tmp_path).resume("orders-source")


def test_configurations_hold_no_password(connect: Answers, tmp_path: Path) -> None:
    found = _shop(connect, tmp_path)
    settings = found.lab.home.settings
    secrets = [settings.s3_secret_key, settings.postgres_password]
    for name, config in found.configs().items():
        assert not [s for s in secrets if any(s in value for value in config.values())], name


def test_the_files_of_the_pipeline_are_what_is_deployed(connect: Answers, tmp_path: Path) -> None:
    shop = _shop(connect, tmp_path)
    files = {path.stem for path in (programs() / "connectors").iterdir()}
    assert files == set(shop.configs()) == set(connectors.CONNECTORS)
    source = shop.configs()["orders-source"]
    assert source["database.port"] == str(shop.lab.port("postgres"))
    secrets = shop.lab.home.conf("connect-secrets.properties")
    assert source["database.password"] == f"${{file:{secrets}:postgres.password}}"
    assert source["transforms.route.replacement"] == "$1"
    for config in shop.configs().values():
        assert config["headwater.documentation"]


def test_the_iceberg_sink_goes_to_the_metastore_of_a_lab_on_hive(
    connect: Answers, tmp_path: Path
) -> None:
    shop = _shop(connect, tmp_path)
    before = shop.configs()
    shop.lab.home.settings.hive = True
    after = shop.configs()
    sink = "orders-iceberg-sink"
    changed = dict(after[sink].items() - before[sink].items())
    assert changed == {
        "iceberg.catalog.type": "hive",
        "iceberg.catalog.uri": f"thrift://127.0.0.1:{shop.lab.port('hive')}",
        "iceberg.catalog.warehouse": "s3://warehouse/hive",
        "iceberg.hadoop.iceberg.engine.hive.lock-enabled": "false",
    }
    assert {**before, sink: after[sink]} == after


def test_converters_log_in_to_the_registry_of_a_lab_with_logins(
    connect: Answers, tmp_path: Path
) -> None:
    shop = _shop(connect, tmp_path)
    before = shop.configs()
    settings = shop.lab.home.settings
    settings.secure = True
    after = shop.configs()
    secret = f"${{file:{shop.lab.home.conf('connect-secrets.properties')}:registry.password}}"
    for name, sides in {
        "orders-source": ("key", "value"),
        "orders-iceberg-sink": ("key", "value"),
        "supplier-stats-jdbc-sink": ("value",),
        "orders-s3-sink": (),
    }.items():
        login = {"username": "lab", "password": secret}
        assert dict(after[name].items() - before[name].items()) == {
            f"{side}.converter.apicurio.auth.{key}": value
            for side in sides
            for key, value in login.items()
        }


def test_every_table_is_kept_alike() -> None:
    sys.path.insert(0, str(Path(__file__).parents[3] / "pipelines"))
    import orders

    assert connectors.TABLE_PROPERTIES == orders.TABLE_PROPERTIES


@pytest.mark.parametrize("rate", [2.0, 1000.0])
def test_customers_come_at_the_rate_that_was_asked_for(
    rate: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    pace, counts = OrderRate(rate), []
    while now < 110.0:
        counts.append(pace.due())
        now += pace.interval
    assert counts[0] == 1
    assert sum(counts) == pytest.approx(10 * rate, abs=rate * pace.interval + 1)
