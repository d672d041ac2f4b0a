"""One rule of freshness: the API, the dataset's page and the command give the same verdict."""

from __future__ import annotations

import itertools
import json
from datetime import datetime, timedelta, timezone
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from headwater.cli.main import app
from tests.properties import examples

from .making import event, facet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .conftest import Process

DATASETS = [f"d{n}" for n in range(5)]
RUN = timedelta(seconds=20)
ENDS = {"COMPLETED": "COMPLETE", "FAILED": "FAIL", "ABORTED": "ABORT"}
numbers = itertools.count(1)


class Made(NamedTuple):
    """A job: what it reads and writes, and its runs, the newest first, a period apart."""

    inputs: list[str]
    outputs: list[str]
    streaming: bool
    states: list[str]
    age: int
    period: float

    def began(self, now: datetime) -> list[datetime]:
        # Seconds that keep clear of the minute at which a batch becomes late.
        newest = now - timedelta(minutes=self.age, seconds=25)
        return [newest - n * timedelta(minutes=self.period) for n in range(len(self.states))]

    def events(self, space: str, name: str, now: datetime) -> Iterator[dict[str, Any]]:
        kind = facet(processingType="STREAMING" if self.streaming else "BATCH", integration="X")
        sides: dict[str, Any] = {
            side: [{"namespace": f"s3://{space}", "name": d} for d in named]
            for side, named in (("inputs", self.inputs), ("outputs", self.outputs))
        }
        for state, began in zip(self.states, self.began(now), strict=True):
            run = str(uuid4())
            for what, at in (("START", began), (ENDS.get(state), began + RUN)):
                if what:
                    made = event(what, 0, job=name, job_facets={"jobType": kind}, **sides)
                    made["job"]["namespace"], made["run"]["runId"] = space, run
                    yield {**made, "eventTime": at.isoformat()}

    def due(self, now: datetime) -> datetime | None:
        """When its next write is due at the latest, where it has a habit."""
        began = self.began(now)
        wrote = [at + RUN for at, state in zip(began, self.states, strict=True)
                 if state == "COMPLETED"]  # fmt: skip
        wrote += [at for at, state in zip(began, self.states, strict=True) if state == "RUNNING"]
        if len(began) < 4 or not wrote:
            return None
        usual = median((a - b).total_seconds() for a, b in itertools.pairwise(began))
        return max(wrote) + timedelta(seconds=2 * usual + 60)

    def delivers(self, now: datetime) -> bool:
        state = next(iter(self.states), "NEW")
        if state == "COMPLETED":
            due = self.due(now)
            return not self.streaming and (due is None or now <= due)
        return state not in ("FAILED", "ABORTED")


def expected(estate: list[Made], dataset: str, now: datetime) -> str:
    """The rule once more, as plainly as it can be written."""
    before, seen = [dataset], {dataset}
    passed: list[Made] = []
    for one in before:
        writers = [job for job in estate if job.states and one in job.outputs]
        passed += writers
        more = {name for job in writers for name in job.inputs} - seen
        seen |= more
        before += sorted(more)
    writers = [job for job in estate if job.states and dataset in job.outputs]
    if not all(job.delivers(now) for job in passed):
        return "stale"
    if any(job.states[0] == "RUNNING" for job in writers):
        return "live"
    return "fresh" if any(job.due(now) for job in writers) else "unknown"


some = st.lists(st.sampled_from(DATASETS), max_size=2, unique=True)
jobs = st.builds(
    lambda newest, older, **rest: Made(states=[newest, *older], **rest),
    st.sampled_from(["RUNNING", "COMPLETED", "FAILED", "ABORTED"]),
    st.lists(st.sampled_from(["COMPLETED", "COMPLETED", "COMPLETED", "FAILED"]), max_size=5),
    inputs=some,
    outputs=some,
    streaming=st.booleans(),
    age=st.integers(0, 40),
    period=st.integers(1, 15),
)


@pytest.mark.parametrize(
    "store_url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.full)], indirect=True
)
def test_page_api_and_command_agree_on_any_estate(
    launch: Callable[..., Process], store_url: str
) -> None:
    server = launch(store_url, "--no-page")

    @examples(25, suppress_health_check=list(HealthCheck))
    @given(st.lists(jobs, min_size=1, max_size=6))
    def agree(estate: list[Made]) -> None:
        now, space = datetime.now(timezone.utc), f"estate{next(numbers)}"
        lines = [
            json.dumps(one)
            for number, job in enumerate(estate)
            for one in job.events(space, f"j{number}", now)
        ]
        sent = httpx.post(f"{server.url}/api/v2/events", content="\n".join(lines))
        assert sent.status_code == 201, sent.text
        for name in sorted({d for job in estate for d in (*job.inputs, *job.outputs)}):
            path = f"{server.url}/api/v2/datasets/{quote(f's3://{space}', safe='')}/{name}"
            asked = httpx.get(f"{path}/freshness").json()
            assert httpx.get(path).json()["freshness"] == asked
            command = ["freshness", f"s3://{space}", name, "--url", server.url, "--json"]
            assert json.loads(CliRunner().invoke(app, command).stdout) == asked
            assert asked["verdict"] == expected(estate, name, now)

    agree()


def test_a_table_behind_a_failed_job_is_stale_everywhere(
    launch: Callable[..., Process], store_url: str
) -> None:
    server, now = launch(store_url, "--no-page"), datetime.now(timezone.utc)
    estate = {
        "ingest": Made(["raw"], ["bronze"], False, ["FAILED", *["COMPLETED"] * 4], 5, 10),
        "clean": Made(["bronze"], ["silver"], False, ["COMPLETED"] * 5, 2, 10),
    }
    lines = [json.dumps(e) for name, job in estate.items() for e in job.events("shop", name, now)]
    assert httpx.post(f"{server.url}/api/v2/events", content="\n".join(lines)).status_code == 201
    path = f"{server.url}/api/v2/datasets/{quote('s3://shop', safe='')}/silver"
    shown = httpx.get(path).json()["freshness"]
    assert (shown["verdict"], shown["usualSeconds"]) == ("stale", 600)
    assert [(c["job"]["name"], c["trouble"], c["root"]) for c in shown["causes"]] == [
        ("ingest", "failed", True)
    ]
    said = CliRunner().invoke(app, ["freshness", "s3://shop", "silver", "--url", server.url])
    assert said.exit_code == 0
    assert said.stdout.startswith(f"stale since {shown['since']}, last written ")
    assert "because shop ingest: failed since" in said.stdout


def test_a_batch_is_in_trouble_since_its_first_failure_however_long_ago(
    launch: Callable[..., Process], store_url: str
) -> None:
    server, now = launch(store_url, "--no-page"), datetime.now(timezone.utc)
    hourly = Made(["raw"], ["bronze"], False, [*["FAILED"] * 30, *["COMPLETED"] * 12], 5, 60)
    lines = [json.dumps(one) for one in hourly.events("shop", "ingest", now)]
    assert httpx.post(f"{server.url}/api/v2/events", content="\n".join(lines)).status_code == 201
    space = quote("s3://shop", safe="")
    first = (hourly.began(now)[29] + RUN).isoformat().replace("+00:00", "Z")
    shown = httpx.get(f"{server.url}/api/v2/datasets/{space}/bronze").json()["freshness"]
    assert (shown["since"], shown["causes"][0]["since"]) == (first, first)
    why = httpx.get(f"{server.url}/api/v2/datasets/{space}/bronze/why").json()
    assert [cause["since"] for cause in why["causes"]] == [first]


@pytest.mark.parametrize(("minutes", "late"), [(0.1, []), (1, ["ingest"])])
def test_a_batch_that_somebody_repeats_by_hand_is_not_due_again(
    launch: Callable[..., Process], store_url: str, minutes: float, late: list[str]
) -> None:
    server, now = launch(store_url, "--no-page"), datetime.now(timezone.utc)
    repeated = Made(["raw"], ["bronze"], False, ["COMPLETED"] * 6, 30, minutes)
    lines = [json.dumps(one) for one in repeated.events("shop", "ingest", now)]
    assert httpx.post(f"{server.url}/api/v2/events", content="\n".join(lines)).status_code == 201
    shown = httpx.get(f"{server.url}/api/v2/overview").json()
    assert [one["name"] for one in shown["stale"]] == late


def test_a_batch_that_somebody_repeats_between_two_runs_keeps_its_schedule(
    launch: Callable[..., Process], store_url: str
) -> None:
    server, now = launch(store_url, "--no-page"), datetime.now(timezone.utc)
    hourly = Made(["raw"], ["bronze"], False, ["COMPLETED"] * 4, 300, 60)
    repeated = Made(["raw"], ["bronze"], False, ["COMPLETED"] * 4, 299, 0.1)
    sent = [one for made in (hourly, repeated) for one in made.events("shop", "ingest", now)]
    lines = [json.dumps(one) for one in sent]
    assert httpx.post(f"{server.url}/api/v2/events", content="\n".join(lines)).status_code == 201
    (late,) = httpx.get(f"{server.url}/api/v2/overview").json()["stale"]
    assert late["usualSeconds"] == 3600


@pytest.mark.parametrize("end", ["FAIL", "ABORT"])
def test_a_stream_that_went_wrong_had_written_until_it_last_reported(
    launch: Callable[..., Process], store_url: str, end: str
) -> None:
    server, now = launch(store_url, "--no-page"), datetime.now(timezone.utc)
    lines = []
    for kind in ("STREAMING", "BATCH"):
        made = facet(processingType=kind, integration="X")
        run = str(uuid4())
        for minute, what in ((30, "START"), (20, "RUNNING"), (6, "RUNNING"), (5, end)):
            one = event(what, 0, job=kind, job_facets={"jobType": made}, outputs=[kind])
            one["run"]["runId"] = run
            lines.append({**one, "eventTime": (now - timedelta(minutes=minute)).isoformat()})
    # The table was made by a batch of its own.
    made = event("COMPLETE", 0, job="create", outputs=["STREAMING"])
    made["run"]["runId"] = str(uuid4())
    lines.append({**made, "eventTime": (now - timedelta(minutes=31)).isoformat()})
    body = "\n".join(map(json.dumps, lines))
    assert httpx.post(f"{server.url}/api/v2/events", content=body).status_code == 201
    space, written = quote("s3://lake", safe=""), {}
    for name in ("STREAMING", "BATCH"):
        shown = httpx.get(f"{server.url}/api/v2/datasets/{space}/{name}/freshness").json()
        written[name] = shown["lastWrittenAt"]
    last = (now - timedelta(minutes=6)).isoformat().replace("+00:00", "Z")
    assert written == {"STREAMING": last, "BATCH": None}
