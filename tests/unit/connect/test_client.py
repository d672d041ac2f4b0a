"""Connect's REST, over answers shaped as real ones, and every way it may go wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.connect.life.state import Condition, condition
from headwater.connect.services.endpoint import ConnectError, Endpoint, ProblemKind
from headwater.connect.services.rest import ConnectRest, read_entry

if TYPE_CHECKING:
    from collections.abc import Callable

STATUS = {
    "name": "sink",
    "connector": {"state": "RUNNING", "worker_id": "127.0.0.1:28083", "version": "4.3.1"},
    "tasks": [
        {"id": 1, "state": "FAILED", "worker_id": "w", "version": None, "trace": "Boom\n\tat x"},
        {"id": 0, "state": "RUNNING", "worker_id": "w", "version": "4.3.1"},
    ],
    "type": "sink",
}
INFO: dict[str, Any] = {
    "name": "sink",
    "config": {"connector.class": "a.B", "topics": "orders", "empty": None},
    "tasks": [{"connector": "sink", "task": 0}],
    "type": "sink",
}


def connect(
    handler: Callable[[httpx.Request], httpx.Response], *urls: str, **more: Any
) -> ConnectRest:
    endpoint = Endpoint(urls or ("http://c1:8083",), **more)
    return ConnectRest(endpoint, transport=httpx.MockTransport(handler))


def answers(code: int, body: Any = None, text: str | None = None) -> ConnectRest:
    return connect(
        lambda _: (
            httpx.Response(code, json=body) if text is None else httpx.Response(code, text=text)
        )
    )


def test_one_request_brings_states_and_configurations() -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(200, json={"sink": {"status": STATUS, "info": INFO}})

    found = connect(handler).poll()
    assert asked == ["http://c1:8083/connectors?expand=status&expand=info"]
    entry = read_entry("sink", found["sink"])
    assert entry.info.config == {"connector.class": "a.B", "topics": "orders", "empty": ""}
    assert [(t.id, t.state, t.trace) for t in entry.status.tasks] == [
        (0, "RUNNING", ""), (1, "FAILED", "Boom\n\tat x"),
    ]  # fmt: skip
    assert condition(entry.status) is Condition.FAILED


def test_confluent_cloud_has_its_own_shapes() -> None:
    info = {
        "name": "s",
        "type": "sink",
        "config": [{"config": "connector.class", "value": "S3_SINK"}],
    }
    status = {"name": "s", "connector": {"state": "PROVISIONING"}, "tasks": [], "type": "sink"}

    def handler(request: httpx.Request) -> httpx.Response:
        assert request.url.path.endswith("/clusters/lkc-1/connectors")
        assert request.headers["Authorization"].startswith("Basic ")
        return httpx.Response(
            200, json={"s": {"info": info, "status": status, "id": {"id": "lcc"}}}
        )

    cloud = connect(
        handler,
        "https://api.confluent.cloud/connect/v1/environments/env-1/clusters/lkc-1",
        username="key",
        password="secret",
    )
    entry = read_entry("s", cloud.poll()["s"])
    assert entry.info.config == {"connector.class": "S3_SINK"}
    assert condition(entry.status) is Condition.UNSETTLED
    assert cloud.root() == {}
    assert cloud.unhealthy() is None
    assert cloud.topics("s") is None


def test_connect_before_2_3_is_asked_one_by_one() -> None:
    def handler(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path == "/connectors":
            return httpx.Response(200, json=["sink", "gone"])
        if "gone" in path:
            return httpx.Response(
                404, json={"error_code": 404, "message": "Connector gone not found"}
            )
        return httpx.Response(200, json=STATUS if path.endswith("/status") else INFO)

    found = connect(handler).poll()
    assert list(found) == ["sink"]
    assert read_entry("sink", found["sink"]).info.type == "sink"


@pytest.mark.parametrize(
    ("code", "body", "trouble"),
    [
        (
            409,
            {"error_code": 409, "message": "Cannot complete request momentarily"},
            ProblemKind.REBALANCE,
        ),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}, ProblemKind.STARTING),
        (500, {"error_code": 500, "message": "Request timed out"}, ProblemKind.SERVER),
        (503, {"error_code": 503, "message": "Worker is starting up"}, ProblemKind.STARTING),
        (401, None, ProblemKind.AUTH),
        (403, None, ProblemKind.AUTH),
        (400, {"message": "no"}, ProblemKind.REFUSED),
    ],
)
def test_refusals_are_told_apart(code: int, body: Any, trouble: ProblemKind) -> None:
    with pytest.raises(ConnectError) as caught:
        answers(code, body).poll()
    assert caught.value.trouble is trouble
    assert "c1:8083" in caught.value.message


@pytest.mark.parametrize("text", ["<html>login</html>", "", "[1, 2]", "\x00", '"text"', "{"])
def test_garbage_is_garbage(text: str) -> None:
    with pytest.raises(ConnectError) as caught:
        answers(200, text=text).poll()
    assert caught.value.trouble is ProblemKind.GARBAGE


@pytest.mark.parametrize(
    "raw", [b"{}", b"3", b'{"status": {}, "info": {}}', b'{"status": {"connector": {"state": 1}}}']
)
def test_a_garbled_connector_is_its_own_trouble(raw: bytes) -> None:
    with pytest.raises(ConnectError, match=r"^odd: "):
        read_entry("odd", raw)


def test_another_worker_is_asked_when_one_is_away() -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.host)
        if request.url.host == "c1":
            raise httpx.ConnectError("refused")
        return httpx.Response(200, json={})

    client = connect(handler, "http://c1:8083", "http://c2:8083")
    assert client.poll() == client.poll() == {}
    assert asked == ["c1", "c2", "c2"]


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        (httpx.ConnectError("refused"), ProblemKind.UNREACHABLE),
        (httpx.ReadTimeout("slow"), ProblemKind.TIMEOUT),
        (httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]"), ProblemKind.TLS),
        (httpx.RemoteProtocolError("hung up"), ProblemKind.UNREACHABLE),
    ],
)
def test_faults_of_the_wire_are_told_apart(error: Exception, trouble: ProblemKind) -> None:
    def handler(_: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(ConnectError) as caught:
        connect(handler).poll()
    assert caught.value.trouble is trouble


@pytest.mark.parametrize(
    ("code", "body", "well"),
    [
        (200, {"status": "healthy"}, True),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}, True),
        (
            500,
            {"status": "unhealthy", "message": "Worker was unable to handle this request"},
            False,
        ),
        (503, {"status": "starting", "message": "Worker is still starting up"}, False),
    ],
)
def test_health_where_it_exists(code: int, body: Any, well: bool) -> None:
    assert (answers(code, body).unhealthy() is None) is well


def test_a_connector_is_gone_only_by_connects_own_word() -> None:
    assert answers(200, INFO).exists("sink")
    gone = {"error_code": 404, "message": "Connector sink not found"}
    assert not answers(404, gone).exists("sink")
    for code, body in ((404, {"error_code": 404, "message": "HTTP 404 Not Found"}), (500, None)):
        with pytest.raises(ConnectError):
            answers(code, body).exists("sink")


def test_topics_and_a_connect_that_has_none() -> None:
    assert answers(200, {"sink": {"topics": ["b", "a"]}}).topics("sink") == ("a", "b")
    assert answers(200, {"sink": {"topics": []}}).topics("sink") == ()
    assert answers(404, {"message": "HTTP 404 Not Found"}).topics("sink") is None
    assert answers(405, None).topics("sink") is None
    for odd in (answers(200, ["x"]), answers(500, None)):
        with pytest.raises(ConnectError):
            odd.topics("sink")


def test_names_are_quoted_and_secrets_stay_out_of_errors() -> None:
    asked = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.raw_path.decode())
        return httpx.Response(
            400, json={"message": "bad url jdbc:pg://u:hunter2@h password=hunter3"}
        )

    client = connect(handler, token="t0ken")
    with pytest.raises(ConnectError) as caught:
        client.act("a/b c", "pause")
    assert asked == ["/connectors/a%2Fb%20c/pause"]
    assert "hunter" not in str(caught.value)
    assert "t0ken" not in repr(client.endpoint)


def test_a_plug_in_says_which_keys_are_passwords() -> None:
    keys = [{"name": "a", "type": "PASSWORD"}, {"name": "b", "type": "STRING"}]
    assert answers(200, keys).passwords("x.Y") == {"a"}
    assert answers(404, {}).passwords("x.Y") == frozenset()


def test_what_is_not_connect_is_said() -> None:
    with pytest.raises(ConnectError, match="address of Kafka Connect"):
        answers(200, {"hello": "world"}).root()
    assert json.dumps(answers(200, {"version": "4.3.1"}).root())
