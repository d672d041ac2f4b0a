"""The schema registry of a topic's records, by Confluent's API.

A login comes from the environment alone, so that no process list shows it: `SCHEMA_REGISTRY_USER_INFO`
(`user:password`) or `SCHEMA_REGISTRY_TOKEN`; `SCHEMA_REGISTRY_CA` is a file of certificates to trust,
`SCHEMA_REGISTRY_CERT` and `SCHEMA_REGISTRY_KEY` are files of one to show (PEM).
"""

from __future__ import annotations

import json
import os
import ssl
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

SECONDS = 30
CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"


class Writer(NamedTuple):
    """A schema that records are written with, and the number they carry for it."""

    id: int
    schema: str


def writers(url: str, topic: str) -> list[Writer]:
    """Every version of a topic's value schema, oldest first."""
    with _client(url) as client:
        subject = f"/subjects/{quote(topic, safe='')}-value/versions"
        found = client.get(subject)
        if found.status_code == httpx.codes.NOT_FOUND:
            raise SystemExit(
                f"the registry has no schema of topic {topic}: one comes with the topic's first record"
            )
        entries = [_answer(client.get(f"{subject}/{number}")) for number in _answer(found)]
    return [Writer(entry["id"], entry["schema"]) for entry in entries]


def register(url: str, topic: str, schema: dict[str, Any]) -> Writer:
    """Make the schema of a topic's values known; one that is known already is left alone."""
    text = json.dumps(schema)
    with _client(url) as client:
        subject = f"/subjects/{quote(topic, safe='')}-value/versions"
        body = json.dumps({"schema": text})
        answer = client.post(subject, content=body, headers={"content-type": CONTENT_TYPE})
        return Writer(_answer(answer)["id"], text)


def _client(url: str) -> httpx.Client:
    user = os.environ.get("SCHEMA_REGISTRY_USER_INFO", "").partition(":")
    token = os.environ.get("SCHEMA_REGISTRY_TOKEN", "")
    context = ssl.create_default_context(cafile=os.environ.get("SCHEMA_REGISTRY_CA") or None)
    if shown := os.environ.get("SCHEMA_REGISTRY_CERT"):
        context.load_cert_chain(shown, os.environ.get("SCHEMA_REGISTRY_KEY") or None)
    return httpx.Client(
        base_url=url.rstrip("/"),
        timeout=SECONDS,
        verify=context,
        auth=httpx.BasicAuth(user[0], user[2]) if user[0] else None,
        headers={"authorization": f"Bearer {token}"} if token else None,
    )


def _answer(answer: httpx.Response) -> Any:
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        raise SystemExit(
            f"the registry refuses the login ({answer.status_code}): "
            "set SCHEMA_REGISTRY_USER_INFO or SCHEMA_REGISTRY_TOKEN"
        )
    if answer.is_error:
        raise SystemExit(f"the registry answers {answer.status_code}: {answer.text[:200]}")
    return answer.json()
