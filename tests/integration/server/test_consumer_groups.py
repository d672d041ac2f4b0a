"""The groups that queries name as theirs, by the topic that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .making import dataset, event, facet

if TYPE_CHECKING:
    from .conftest import Client

KAFKA, OTHER = "kafka://k1:9092", "kafka://k2.corp:9092"


def groups(client: Client, namespace: str) -> dict[str, list[str]]:
    answer = client.get("/api/v2/consumer-groups", namespace=namespace)
    assert answer["truncated"] is False
    found: dict[str, list[str]] = answer["topics"]
    return found


def test_groups_are_those_of_the_queries_that_read_a_topic_now(client: Client) -> None:
    def topic(name: str, namespace: str) -> dict[str, object]:
        cluster = facet(clusterId="c-1", bootstrap=["k1:9092", "k2.corp:9092"])
        return dataset(name, namespace, headwater_cluster=cluster)

    def reads(number: int, kind: str, namespace: str, *named: str) -> dict[str, object]:
        facets = {"headwater_consumerGroups": facet(groups=list(named))} if named else {}
        return event(
            kind, number, job=f"query{number % 10}", run=number % 10,
            inputs=[topic("orders", namespace)], outputs=["out"], run_facets=facets,
        )  # fmt: skip

    client.post(
        reads(1, "START", OTHER, "etl", "mine-*"),
        reads(2, "RUNNING", KAFKA, "etl", "audit"),
        reads(3, "RUNNING", KAFKA),
        event("RUNNING", 4, job="writer", run=4, outputs=[topic("bids", KAFKA)]),
    )
    # Whichever address the query has of the cluster.
    named = {"orders": ["audit", "etl", "mine-*"]}
    assert groups(client, KAFKA) == groups(client, OTHER) == named
    third = {
        "dataset": {"namespace": KAFKA, "name": "orders"},
        "alias": {"namespace": "kafka://k3:9092", "name": "orders"},
    }
    assert client.call("POST", "/api/v2/aliases", json=third).is_success
    assert groups(client, "kafka://k3:9092") == named
    client.post(reads(11, "ABORT", OTHER, "etl", "mine-*"))
    assert groups(client, KAFKA) == {"orders": ["audit", "etl"]}
    assert groups(client, "kafka://unknown:9092") == {}
    damaged = {"headwater_consumerGroups": facet(groups="etl")}
    client.post(
        event("START", 5, job="odd", run=5, inputs=[topic("bids", KAFKA)], run_facets=damaged)
    )
    assert "bids" not in groups(client, KAFKA)
    assert client.call("GET", "/api/v2/consumer-groups").status_code == 400
