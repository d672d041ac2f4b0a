"""The schemas that a dataset has had, from all that was reported at once: the rules and nothing else.

A reference for the stores. It keeps no state and no order of arrival: at each moment it asks anew which
claims count then, by the rules of docs/api.md.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from headwater.lineage.schema import read_fields
from headwater.lineage.schema.claims import Rank, shape

from .making import P, dataset, event, facet
from .test_schemas import KAFKA, STREAM, fields, static

RENEWS = ("CREATE", "DROP")
A, B, C = "a int", "a int, b int", "c int"
TEXTS = (A, B, C, "a int, c int")
OF_TOPICS = (*TEXTS, "a int, key int", "c int, key int", "key int")

Names = frozenset[str]
History = list[tuple[int, Names]]
Whose = tuple[Rank, str, str]


def _body(text: str) -> bytes:
    return json.dumps(fields(text), sort_keys=True, separators=(",", ":")).encode()


class Claimed(NamedTuple):
    """What one event claims; claims with one key replace each other."""

    second: int
    rank: Rank
    author: str
    key: str
    text: str
    version: int = 0
    part: str = ""
    """What of a topic it is about, where it does not replace the other part."""

    @property
    def whose(self) -> Whose:
        return self.rank, self.author, self.part

    @property
    def looks(self) -> bytes:
        return shape(read_fields(_body(self.text)))


class Ended(NamedTuple):
    """That a dataset was altered or overwritten, or is another one since (`renewed`)."""

    second: int
    renewed: bool


class Said(NamedTuple):
    """What an event says of the dataset: its fields, or nothing, and what has become of it."""

    second: int
    text: str
    change: str

    @property
    def claims(self) -> bool:
        return bool(self.text) and self.change != "DROP"

    def facets(self, **more: Any) -> dict[str, Any]:
        found = {"schema": fields(self.text)} if self.text else {}
        if self.change:
            found["lifecycleStateChange"] = facet(lifecycleStateChange=self.change)
        return found | more


class Report(NamedTuple):
    """What one author says, one event after the other."""

    kind: str
    job: int
    run: int
    version: int
    said: tuple[Said, ...]
    end: str = ""
    alias: bool = False
    """Whether it names the dataset as a catalog does."""

    @property
    def author(self) -> str:
        return f"{self.kind} {self.job}"

    @property
    def writes(self) -> bool:
        return self.kind in ("output", "job output", "dataset", "batch output")

    def claims(self) -> list[Claimed]:
        made = [one for one in self.said if one.claims or (one.text and not self.writes)]
        job, run = self.author, f"{self.author} {self.run} {self.alias}"
        if self.kind == "batch output":  # announced by its first event, written when it completed
            if not made:
                return []
            text = max(made, key=lambda one: (one.second, _body(one.text))).text
            first = min(one.second for one in made)
            found = [Claimed(first, Rank.ANNOUNCED, job, f"{run} announced", text)]
            if self.end == "COMPLETE":
                found.append(Claimed(self.said[-1].second, Rank.WRITER, job, run, text))
            return found
        rank, author, key = {
            "output": (Rank.WRITER, job, run),
            "input": (Rank.READER, job, run),
            "batch input": (Rank.READER, job, f"{job} {self.alias}"),
            "job output": (Rank.DEFINED, job, f"{job} {self.alias}"),
            "dataset": (Rank.DECLARED, "", f"{job} {self.alias}"),
            "asked": (Rank.SOURCE, "subject", f"{job} {self.alias}"),
            "catalog": (Rank.SOURCE, f"catalog {self.run}", f"{job} {self.alias}"),
        }[self.kind]
        if self.version:  # whoever asked: the answer is the subject's own
            key = author
        return [Claimed(one.second, rank, author, key, one.text, self.version) for one in made]

    def ends(self) -> list[Ended]:
        """When earlier claims end: a run does that once, a batch when it completed."""
        if not self.writes:
            return []
        changes = [Ended(one.second, one.change in RENEWS) for one in self.said if one.change]
        if not changes or self.kind in ("job output", "dataset"):
            return changes
        if self.kind == "output":
            return [min(changes, key=lambda one: (one.second, not one.renewed))]
        if self.end != "COMPLETE":
            return []
        return [Ended(self.said[-1].second, any(one.renewed for one in changes))]

    def events(self, number: int, namespace: str) -> list[dict[str, Any]]:
        return [self._event(place, number, namespace) for place in range(len(self.said))]

    def _event(self, place: int, number: int, namespace: str) -> dict[str, Any]:
        one = self.said[place]
        more: dict[str, Any] = {}
        if self.kind == "asked":
            more["headwater_schemaSource"] = facet(
                kind="registry", subject="s", version=self.version
            )
        elif self.kind == "catalog":
            more["headwater_schemaSource"] = facet(
                kind="catalog", subject=f"uuid-{self.run}", version=0, sequence=self.version
            )
        if not self.writes:
            one = one._replace(change="")
        about = dataset(f"t{number}", namespace, **one.facets(**more))
        if self.alias:
            about |= link_to(number)
        sides: dict[str, Any] = {"outputs" if self.kind.endswith("output") else "inputs": [about]}
        job = f"{self.author} {number}"
        if self.kind == "dataset":
            return {**static(one.second, dataset=about), "producer": f"{P}/{self.job}"}
        if self.kind == "job output":
            return static(one.second, job={"namespace": "jobs", "name": job}, **sides)
        kinds = ("output", "input", "batch input", "batch output", "asked", "catalog")
        run = 10_000 * number + 1_000 * kinds.index(self.kind) + 100 * self.job + self.run
        state = "RUNNING"
        if self.kind == "batch output":
            state = self.end if self.end and place == len(self.said) - 1 else "START"
            run += 50 * self.alias
        streams = self.kind in ("output", "input", "asked", "catalog")
        facets: dict[str, Any] = {"job_facets": STREAM} if streams else {}
        return event(state, one.second, job=job, run=run, **facets, **sides)


def link_to(number: int) -> dict[str, str]:
    """What a catalog calls the dataset."""
    return {"namespace": "hive://m", "name": f"db.t{number}"}


def linked(number: int, namespace: str) -> dict[str, Any]:
    """An event that claims nothing, and says what the dataset is called besides."""
    link = facet(identifiers=[{**link_to(number), "type": "TABLE"}])
    about = dataset(f"t{number}", namespace, symlinks=link)
    return event("RUNNING", 1, job=f"linker {number}", run=10_000 * number + 9_999, inputs=[about])


class Stretch(NamedTuple):
    """Claims of one key that look alike, with no other of that key between."""

    first: int
    last: int
    claim: Claimed


def _on_part(claim: Claimed, *, topic: bool) -> list[Claimed]:
    """The claim, or where a job makes it on a topic, one on each part that it has fields of."""
    if not topic or claim.rank <= Rank.DECLARED:
        return [claim]
    named = claim.text.split(", ")
    split = {"key": [f for f in named if f.startswith("key ")],
             "value": [f for f in named if not f.startswith("key ")]}  # fmt: skip
    return [claim._replace(part=part, text=", ".join(some)) for part, some in split.items() if some]


def _stretches(claims: list[Claimed], *, topic: bool) -> list[Stretch]:
    found: list[Stretch] = []
    for key in {(c.key, c.rank, c.author, c.version) for c in claims}:
        mine = [c for c in claims if (c.key, c.rank, c.author, c.version) == key]
        if key[3]:  # what has a version is ordered by it, whatever is claimed between
            for looks in {c.looks for c in mine}:
                same = [c for c in mine if c.looks == looks]
                seconds = [c.second for c in same]
                found.append(Stretch(min(seconds), max(seconds), same[0]))
            continue
        last: dict[str, Stretch] = {}
        for second in sorted({c.second for c in mine}):
            at_once = [c for c in mine if c.second == second]
            for claim in _on_part(max(at_once, key=lambda c: _body(c.text)), topic=topic):
                before = last.get(claim.part)
                if before is not None and before.claim.looks == claim.looks:
                    found.remove(before)
                    last[claim.part] = before._replace(last=second)
                else:
                    last[claim.part] = Stretch(second, second, claim)
                found.append(last[claim.part])
    return found


def _counts(stretches: list[Stretch], ends: list[Ended], now: int) -> dict[Whose, str]:
    """The text that counts for each author, and part, at a moment."""
    begun = [one for one in stretches if one.first <= now]
    alive = [one for one in begun if not _is_over(one, ends, now)]
    found: dict[Whose, str] = {}
    for whose in {one.claim.whose for one in alive}:
        mine, author = [one for one in alive if one.claim.whose == whose], whose[1]
        if any(one.claim.version for one in begun if one.claim.author == author):
            mine = [one for one in mine if one.claim.version]
            if not mine:
                continue
            best = max(one.claim.version for one in mine)
            mine = [one for one in mine if one.claim.version == best]
            one = min(mine, key=lambda one: (one.first, one.claim.looks))
        else:
            one = max(mine, key=lambda one: (one.first, one.claim.looks))
        found[whose] = one.claim.text
    tables = [one for one in begun if one.claim.author.startswith("catalog ")]
    if tables:
        firsts: dict[str, int] = {}
        for one in tables:
            firsts[one.claim.author] = min(one.first, firsts.get(one.claim.author, one.first))
        newest = max(firsts, key=lambda author: (firsts[author], author))
        found = {
            whose: text
            for whose, text in found.items()
            if not whose[1].startswith("catalog ") or whose[1] == newest
        }
    return found


def _is_over(one: Stretch, ends: list[Ended], now: int) -> bool:
    """Whether the dataset was altered since this was claimed last: what is claimed again goes on."""
    if one.claim.rank is Rank.DECLARED:
        return False
    mine = [end for end in ends if end.renewed or one.claim.rank is not Rank.SOURCE]
    return any(one.last < end.second <= now for end in mine)


def _names(text: str) -> Names:
    return frozenset(field.split()[0] for field in text.split(", "))


def _parts(names: Names, *, topic: bool) -> dict[str, Names]:
    if not topic:
        return {"whole": names}
    split = {"key": names & {"key"}, "value": names - {"key"}}
    return {part: found for part, found in split.items() if found}


def history(reports: list[Report], *, topic: bool) -> History:
    """Each schema and since when."""
    claims = [claim for report in reports for claim in report.claims()]
    ends = [end for report in reports for end in report.ends()]
    stretches = _stretches(claims, topic=topic)
    versions: History = []
    decided: dict[str, tuple[Rank, Names]] = {}
    for now in sorted({c.second for c in claims} | {e.second for e in ends}):
        parts: dict[str, tuple[Rank, Names]] = {}
        for (rank, *_), text in _counts(stretches, ends, now).items():
            for part, names in _parts(_names(text), topic=topic).items():
                best, known = parts.get(part, (rank, frozenset()))
                if rank < best:
                    known = frozenset()
                if rank <= best:
                    parts[part] = rank, known | names
        before, decided = decided, parts
        if not parts:
            continue  # a dataset that is gone keeps the schema that it had
        schema = frozenset().union(*(names for _, names in parts.values()))
        if versions and schema == versions[-1][1]:
            continue
        corrected = bool(before) and before.keys() <= parts.keys() and all(
            part not in before or rank < before[part][0]
            for part, (rank, names) in parts.items()
            if part not in before or before[part][1] != names
        )  # fmt: skip
        begun = versions.pop()[0] if versions and corrected else now
        if not versions or versions[-1][1] != schema:
            versions.append((begun, schema))
    return versions


def namespace_of(*, topic: bool) -> str:
    return KAFKA if topic else "s3://lake"
