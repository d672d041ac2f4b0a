"""Datasets that are almost surely one under two names: candidates by their names, judged by evidence.

Candidates share a key that is made of a name by some rule, so nothing is compared with everything. A
rule alone gives how often such names mean one dataset; other evidence about the two raises or lowers
that. Two that one job reads and writes are never one, nor are all that they would be joined with.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol

from headwater.lineage.graph import N
from headwater.lineage.naming import NamingError, canonical, from_uri

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

__all__ = [
    "DEFAULT_SCORE",
    "SHOWN_SCORE",
    "Identity",
    "JobUse",
    "KnownDataset",
    "NameRules",
    "Pair",
    "Proof",
    "same_datasets",
]  # fmt: skip

DEFAULT_SCORE = 0.8
"""From here on a pair is almost surely one dataset."""
SHOWN_SCORE = 0.5
"""Pairs below are not listed by default."""
LOWEST = 0.3
FAR = 2_000
"""Datasets downstream of one that are searched for the other, which then is a copy of it."""
BLOCK = 40
"""Pairs of one key that are compared; a name that more share is no evidence."""
COMMON = 0.8
"""The part of the columns that two schemas share to be nearly the same."""
STRANGE = 0.3
CLEAR = 0.1
"""By how much the best of several candidates must lead."""


class MatchRule(NamedTuple):
    """A way in which one dataset gets two names; a certain one needs no evidence beside it."""

    name: str
    weight: float
    text: str
    certain: bool = False
    rivals: bool = False
    """Whether a name has one partner by this rule, so that several make each doubtful."""


SPELLING = MatchRule("spelling", 0.9, "two spellings of one name", certain=True)
SCHEME = MatchRule("scheme", 0.9, "two schemes of one store", certain=True)
SLASH = MatchRule("slash", 0.9, "a slash at the end", certain=True)
PORT = MatchRule("port", 0.88, "one name leaves the store's default port out", certain=True)
LOOPBACK = MatchRule("loopback", 0.85, "two names of the machine itself", certain=True)
ENDPOINT = MatchRule("endpoint", 0.88, "an endpoint of the store, and its plain name", certain=True)
OWN = MatchRule("rule", 0.95, "a rule of yours", certain=True)
FILE = MatchRule(
    "file", 0.9, "the SQL of a job that reports the table reads the file", certain=True
)
LIKELY_FILE = MatchRule(
    "file",
    0.5,
    "the SQL of a job reads one file, and names all tables that the job reports but this",
)
CASE = MatchRule(
    "case", 0.82, "upper and lower case in a store that does not tell them apart", certain=True
)
SPOKEN_CASE = MatchRule("case", 0.5, "upper and lower case")
HOST = MatchRule("host", 0.7, "a short and a long name of one host", rivals=True)
PATH = MatchRule(
    "path", 0.7, "a database file by its whole path, and by one that ends it", rivals=True
)
REGION = MatchRule("region", 0.6, "a name with and without account or region", rivals=True)
FOLDER = MatchRule("folder", 0.55, "a folder of a database, with and without .db", rivals=True)
CATALOG = MatchRule("catalog", 0.5, "a name in a catalog, and a path of that name", rivals=True)
BROKER = MatchRule("broker", 0.45, "two brokers or listeners of one cluster")
ADDRESS = MatchRule("address", 0.4, "an address and a host name", rivals=True)

ENVIRONMENT_DOUBT = {ADDRESS: 0.7, BROKER: 0.7, HOST: 0.9}
"""What a score is worth where one name has the word of an environment and the other none."""

_LOOPBACK = re.compile(r"localhost(\.localdomain)?|127\.\d+\.\d+\.\d+|\[::1\]|0\.0\.0\.0")
_IP = re.compile(r"\d{1,3}(\.\d{1,3}){3}|\[[0-9a-f:.%\w]+\]")
_PLACE = re.compile(r"([a-z][a-z0-9+.\-_]*)://([^/]*)(.*)", re.DOTALL)
_AWS = re.compile(
    r"(?:[a-z0-9\-]+\.)?(?:dynamodb|kinesis|sqs|sns|athena)\.([a-z0-9\-]+)\.amazonaws\.com"
)
_RDS = re.compile(
    r"([a-z0-9\-]+)\.(?:cluster-ro-|cluster-)?([a-z0-9]+)\.([a-z0-9\-]+)\.rds\.amazonaws\.com"
)
_ARN = re.compile(r"arn:aws[a-z\-]*:(dynamodb|kinesis|sqs|sns):([a-z0-9\-]+):\d+")
_S3 = re.compile(r"(?:.+\.)?s3[.\-](?:[a-z0-9\-]+\.)*amazonaws\.com(?:\.cn)?")
_NUMBERED = re.compile(r"^(.*?)[\-_]?\d+$")
_WORD = re.compile(r"[A-Za-z]+")
DEFAULT_PORTS = {"hive": 9083, "hdfs": 8020, "trino": 8080, "presto": 8080}
"""Ports that the naming module leaves alone, because some clusters have another."""
FOLDING = frozenset({
    "snowflake", "oracle", "hive", "mssql", "sqlserver", "redshift", "db2", "teradata", "trino",
    "presto", "impala", "unitycatalog", "awsathena", "sap", "vertica", "exasol",
})  # fmt: skip
"""Stores whose tables have one name in any case."""
DATABASE_FILES = frozenset({"duckdb", "sqlite"})
PATHS = frozenset({"s3", "gs", "abfss", "hdfs", "file", "dbfs", "oss"})
CATALOGS = frozenset({"hive", "trino", "presto", "unitycatalog", "impala", "awsathena", "iceberg"})
WAREHOUSES = frozenset({"", "warehouse"})
BROKERS = frozenset({"b", "k", "broker", "brokers", "kafka", "node", "bootstrap", "server"})
ENVIRONMENTS = {
    word: group
    for group, words in {
        "dev": "dev devel development",
        "test": "test testing tst qa uat sit",
        "stage": "stage staging stg preprod preproduction",
        "prod": "prod production prd live",
        "sandbox": "sandbox sbx playground",
    }.items()
    for word in words.split()
}

Named = tuple[str, str]
"""A namespace and a name."""


@dataclass(frozen=True)
class KnownDataset(Generic[N]):
    """A dataset under the name that it is shown by."""

    node: N
    namespace: str
    name: str


class JobUse(NamedTuple):
    """A dataset that a job reads or writes, or has once; both as nodes."""

    job: object
    dataset: object
    writes: bool
    now: bool = True


class Identity(Protocol[N]):
    """The evidence for whether two datasets are one."""

    def datasets(self) -> Sequence[KnownDataset[N]]:
        """Every dataset, each once, however many names stand for it."""
        ...

    def uses(self) -> Collection[JobUse]:
        """Every dataset that a job has ever read or written."""
        ...

    def columns(self, nodes: Collection[N]) -> Mapping[N, frozenset[str]]:
        """The columns of these datasets, as far as they are known."""
        ...

    def symlinks(self, nodes: Collection[N]) -> Mapping[N, frozenset[Named]]:
        """The other names that events declared for these datasets."""
        ...

    def clusters(self) -> Mapping[str, str]:
        """The cluster that a namespace is known to be."""
        ...

    def files(self) -> Mapping[N, Named]:
        """The file that a dataset stands for, where a job reports a table and its SQL reads a file."""
        ...

    def likely_files(self) -> Mapping[N, Named]:
        """The same where nothing but the job's other tables and files says so."""
        ...


@dataclass(frozen=True)
class NameRules:
    """What a user knows of names: how they are to be read, and which pairs are never one."""

    read: Callable[[str, str], Named] | None = None
    never: Callable[[Named, Named], bool] | None = None


class Proof(NamedTuple):
    """One piece of evidence for a pair, or against it."""

    kind: str
    text: str


@dataclass(frozen=True)
class Pair(Generic[N]):
    """Two datasets that may be one: `alias` would stand for `dataset`."""

    alias: KnownDataset[N]
    dataset: KnownDataset[N]
    score: float
    rule: str
    proofs: tuple[Proof, ...]


@dataclass(frozen=True)
class _Form:
    """A name as the rules that are certain spell it."""

    scheme: str
    host: str
    port: int | None
    rest: str
    name: str
    rules: tuple[MatchRule, ...]

    @property
    def key(self) -> tuple[object, ...]:
        return self.scheme, self.host, self.port, self.rest, self.name

    @property
    def folded(self) -> str:
        return self.name.lower() if self.scheme in FOLDING else self.name

    @property
    def environments(self) -> set[str]:
        words = _WORD.findall(f"{self.host} {self.rest} {self.name}".lower())
        return {ENVIRONMENTS[word] for word in words if word in ENVIRONMENTS}

    @property
    def is_address(self) -> bool:
        return self.host == "localhost" or bool(_IP.fullmatch(self.host))


def _form(namespace: str, name: str) -> _Form:
    rules: list[MatchRule] = []
    spelled = canonical(namespace, name)
    if spelled != (namespace, name):
        rules.append(_spelling(namespace, name, spelled))
    space, text = _endpoint(*spelled)
    if (space, text) != spelled:
        rules.append(ENDPOINT)
    stripped = text.rstrip("/") or text
    if stripped != text:
        rules.append(SLASH)
    match = _PLACE.fullmatch(space)
    if match is None:
        return _Form("", space, None, "", stripped, tuple(rules))
    scheme, host, rest = match[1], match[2], match[3].rstrip("/")
    host, port = _port(host)
    if port is None and scheme in DEFAULT_PORTS and not rest:
        port = DEFAULT_PORTS[scheme]
        rules.append(PORT)
    if _LOOPBACK.fullmatch(host):
        if host != "localhost":
            rules.append(LOOPBACK)
        host = "localhost"
    elif found := _AWS.fullmatch(host):
        host, port = found[1], None
        rules.append(ENDPOINT)
    elif found := _RDS.fullmatch(host):
        plain = f"{found[1]}.{found[2]}.{found[3]}.rds"
        if "cluster-" in host:
            rules.append(ENDPOINT)
        host = plain
    return _Form(scheme, host, port, rest, stripped, tuple(rules))


def _spelling(namespace: str, name: str, spelled: Named) -> MatchRule:
    """What the naming module spells otherwise."""
    if name != spelled[1]:
        return SLASH if name.strip("/") == spelled[1].strip("/") else SPELLING
    if namespace.rstrip("/").lower() == spelled[0].lower():
        return SLASH if namespace.rstrip("/") == spelled[0] else SPELLING
    if namespace.partition("://")[0].lower() != spelled[0].partition("://")[0]:
        return SCHEME
    return PORT if spelled[0].lower().startswith(namespace.rstrip("/").lower()) else SPELLING


def _endpoint(space: str, name: str) -> Named:
    """An object behind the web address of its store, or behind another scheme of it."""
    scheme, _, rest = space.partition("://")
    host = rest.partition("/")[0]
    web = scheme in ("http", "https")
    if web or (scheme == "s3" and _S3.fullmatch(host)) or host == "storage.googleapis.com":
        try:
            found = from_uri(f"https://{rest.rstrip('/')}/{name.lstrip('/')}")
        except NamingError:
            return space, name
        if found.namespace.startswith(("http://", "https://", "arn:")):
            return space, name
        space, name = found
    return ("abfss" + space[5:] if space.startswith("wasbs://") else space), name


def _port(host: str) -> tuple[str, int | None]:
    if host.startswith("["):
        inner, _, port = host.partition("]")
        return f"{inner}]", int(port[1:]) if port[1:].isdigit() else None
    name, colon, port = host.rpartition(":")
    return (name, int(port)) if colon and port.isdigit() else (host, None)


@dataclass
class _Candidates:
    """The pairs that some rule finds, each with the rule of the highest weight."""

    found: dict[tuple[int, int], MatchRule] = field(default_factory=dict)
    company: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    """All that share the key by which a pair was found."""

    def add(self, one: int, other: int, rule: MatchRule, company: list[int] | None = None) -> None:
        key = (min(one, other), max(one, other))
        held = self.found.get(key)
        if one != other and (held is None or rule.weight > held.weight):
            self.found[key] = rule
            self.company[key] = company or []


Block = dict[tuple[object, ...], list[int]]


def _candidates(
    forms: Sequence[_Form], read: Iterable[tuple[MatchRule, Mapping[int, Named]]]
) -> _Candidates:
    found = _Candidates()
    for members in _blocks(forms, lambda form: [form.key]).values():
        for other in members[1:]:  # a chain is enough: they are one by name
            rules = (*forms[members[0]].rules, *forms[other].rules) or (SPELLING,)
            found.add(members[0], other, min(rules, key=lambda rule: rule.weight))
    for members in _blocks(forms, lambda form: [tuple(map(_lower, form.key))]).values():
        for one, other in _few(combinations(members, 2)):
            if forms[one].key != forms[other].key:
                folding = forms[one].scheme in FOLDING
                found.add(one, other, CASE if folding else SPOKEN_CASE)
    for keys, fits, rule in (
        (_host_keys, _is_short, HOST),
        (_address_keys, _is_address_of, ADDRESS),
        (_broker_keys, _differ, BROKER),
        (_path_keys, _is_end_of, PATH),
        (_region_keys, _is_region_of, REGION),
        (_folder_keys, _differ, FOLDER),
        (_catalog_keys, _is_catalog_of, CATALOG),
    ):
        for members in _blocks(forms, keys).values():
            fitting = (
                (one, other)
                for one, other in combinations(members[:BLOCK], 2)
                if fits(forms[one], forms[other])
            )
            for one, other in _few(fitting):
                found.add(one, other, rule, members)
    for rule, names in read:
        _add_read(found, forms, names, rule)
    return found


def _few(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The pairs of a key; none where there are so many that the key is no evidence."""
    found = []
    for pair in pairs:
        found.append(pair)
        if len(found) > BLOCK:
            return []
    return found


def _add_read(
    found: _Candidates, forms: Sequence[_Form], names: Mapping[int, Named], rule: MatchRule
) -> None:
    """Pairs of what is the same dataset once some names are read as others."""
    if not names:
        return
    places: Block = defaultdict(list)
    read = {number: _form(*named) for number, named in names.items()}
    for number, form in enumerate(forms):
        places[read.get(number, form).key].append(number)
    for members in places.values():
        for other in members[1:]:
            if members[0] in names or other in names:
                found.add(members[0], other, rule)


def _blocks(forms: Sequence[_Form], keys: Callable[[_Form], Iterable[tuple[object, ...]]]) -> Block:
    found: Block = defaultdict(list)
    for number, form in enumerate(forms):
        for key in keys(form):
            found[key].append(number)
    return {key: members for key, members in found.items() if len(members) > 1}


def _lower(part: object) -> object:
    return part.lower() if isinstance(part, str) else part


def _host_keys(form: _Form) -> Iterator[tuple[object, ...]]:
    if _has_host(form) and not form.is_address:
        yield form.scheme, form.host.partition(".")[0], form.port, form.rest, form.folded


def _has_host(form: _Form) -> bool:
    return bool(form.scheme and form.host) and (form.scheme not in PATHS or form.scheme == "hdfs")


def _is_short(one: _Form, other: _Form) -> bool:
    short, long = sorted((one.host, other.host), key=len)
    return long.startswith(f"{short}.")


def _address_keys(form: _Form) -> Iterator[tuple[object, ...]]:
    if _has_host(form):
        yield form.scheme, form.port, form.rest, form.folded


def _is_address_of(one: _Form, other: _Form) -> bool:
    """Whether one is an address, or this machine, and the other a name."""
    if one.is_address == other.is_address:
        return {one.host, other.host} >= {"localhost"} and one.host != other.host
    return True


def _broker_keys(form: _Form) -> Iterator[tuple[object, ...]]:
    if form.scheme != "kafka" or (form.is_address and form.host != "localhost"):
        return
    yield "listener", form.host, form.name
    label, dot, rest = form.host.partition(".")
    numbered = _NUMBERED.fullmatch(label)
    if numbered and _WORD.findall(numbered[1])[-1:] and _WORD.findall(numbered[1])[-1] in BROKERS:
        yield "broker", numbered[1], dot + rest, form.port, form.name


def _differ(one: _Form, other: _Form) -> bool:
    return one.key != other.key


def _path_keys(form: _Form) -> Iterator[tuple[object, ...]]:
    if form.scheme in DATABASE_FILES:
        yield form.scheme, _file_path(form).rpartition("/")[2], form.name


def _file_path(form: _Form) -> str:
    return (form.host + form.rest).removeprefix("./")


def _is_end_of(one: _Form, other: _Form) -> bool:
    """Whether one is a relative path, which begins where its program did, and may be the other."""
    short, long = sorted((_file_path(one), _file_path(other)), key=len)
    return not short.startswith("/") and long.startswith("/") and long.endswith(f"/{short}")


def _region_keys(form: _Form) -> Iterator[tuple[object, ...]]:
    """Names of services in a region, with an account and without."""
    if match := _ARN.fullmatch(form.host):
        yield match[1], match[2], form.name.rpartition("/")[2]
    elif form.scheme in ("dynamodb", "kinesis", "sqs", "sns"):
        yield form.scheme, form.host, form.name
    elif form.host.endswith(".rds"):
        name, _, region, _ = form.host.rsplit(".", 3)
        yield form.scheme, f"{name}.{region}", form.port, form.name
    elif form.scheme and form.host.count(".") == 1:
        yield form.scheme, form.host, form.port, form.name


def _is_region_of(one: _Form, other: _Form) -> bool:
    """Whether one of two names leaves the account out; two accounts are two stores."""
    accounts = [form.host.endswith(".rds") or form.host.startswith("arn:") for form in (one, other)]
    return accounts[0] != accounts[1]


def _folder_keys(form: _Form) -> Iterator[tuple[object, ...]]:
    if form.scheme in PATHS or form.host == "file":
        yield form.scheme, form.host, form.port, form.rest, *_segments(form.name)


def _segments(path: str) -> list[str]:
    """A path without what Hive adds: `.db` behind a database, and nothing for the default one."""
    parts = [part.removesuffix(".db") for part in path.split("/") if part]
    return [part for part in parts[:-1] if part != "default"] + parts[-1:]


def _catalog_keys(form: _Form) -> Iterator[tuple[object, ...]]:
    if form.scheme in PATHS or form.host == "file":
        parts = [part for part in form.name.lower().split("/") if part]
        database = parts[-2].removesuffix(".db") if len(parts) > 1 else ""
        if parts:
            yield "default" if database in WAREHOUSES else database, parts[-1]
    elif form.scheme in CATALOGS or form.host.startswith("arn:aws:glue"):
        parts = re.split(r"[./]", form.name.lower())
        if len(parts) > 1:
            yield parts[-2], parts[-1]


def _is_path(form: _Form) -> bool:
    return form.scheme in PATHS or form.host == "file"


def _is_catalog_of(one: _Form, other: _Form) -> bool:
    return _is_path(one) != _is_path(other)


@dataclass
class _Lives:
    """Who reads and writes each dataset."""

    readers: dict[object, set[object]] = field(default_factory=lambda: defaultdict(set))
    writers: dict[object, set[object]] = field(default_factory=lambda: defaultdict(set))
    written: dict[object, set[object]] = field(default_factory=lambda: defaultdict(set))
    """What each job writes."""
    _reached: dict[object, set[object]] = field(default_factory=dict)

    @classmethod
    def of(cls, uses: Iterable[JobUse]) -> _Lives:
        found = cls()
        for job, dataset, writes, _ in uses:
            (found.writers if writes else found.readers)[dataset].add(job)
            if writes:
                found.written[job].add(dataset)
        return found

    def crossed(self, one: object, other: object) -> bool:
        """Whether a job reads one of two datasets and writes the other."""
        readers, writers, nobody = self.readers, self.writers, set[object]()
        return not (
            readers.get(one, nobody).isdisjoint(writers.get(other, nobody))
            and readers.get(other, nobody).isdisjoint(writers.get(one, nobody))
        )

    def leads(self, start: object, end: object) -> bool:
        """Whether data goes from one dataset to another, as far as is looked."""
        if start not in self._reached:
            self._reached[start] = self._downstream(start)
        return end in self._reached[start]

    def _downstream(self, start: object) -> set[object]:
        found, waiting = {start}, [start]
        for dataset in waiting:
            if len(found) > FAR:
                break
            for job in self.readers.get(dataset, ()):
                fresh = self.written[job] - found if job in self.written else set()
                found |= fresh
                waiting += fresh
        return found - {start}

    def beside(self, one: object, other: object) -> bool:
        """Whether a job uses both on the same side."""
        return any(
            not side.get(one, set()).isdisjoint(side.get(other, set()))
            for side in (self.readers, self.writers)
        )

    def parts(self, dataset: object) -> tuple[bool, bool]:
        """Whether anybody writes it, and whether anybody else reads it: an upsert reads what it writes."""
        writers = self.writers.get(dataset, set())
        return bool(writers), bool(self.readers.get(dataset, set()) - writers)


class _Judge(Generic[N]):
    """Scores candidates by what is known of both."""

    def __init__(
        self, estate: Identity[N], lives: _Lives, known: Sequence[KnownDataset[N]],
        forms: Sequence[_Form], candidates: Iterable[tuple[int, int]],
    ) -> None:  # fmt: skip
        self._known, self._forms, self._lives = known, forms, lives
        nodes = {known[number].node for pair in candidates for number in pair}
        self._columns = estate.columns(nodes)
        self._symlinks = estate.symlinks(nodes)
        self._clusters = estate.clusters()

    def score(
        self, one: int, other: int, rule: MatchRule
    ) -> tuple[float, tuple[Proof, ...]] | None:
        """How surely two are one and why; None if they are not."""
        first, second = self._known[one], self._known[other]
        clusters = {self._clusters.get(known.namespace) for known in (first, second)} - {None}
        doubt = self._doubt(one, other, rule)
        if len(clusters) > 1 or doubt is None:
            return None
        if not rule.certain and self._is_copy(first, second):
            return None
        proofs = [Proof("rule", rule.text), Proof("name", f"both end in {_last(first.name)}")]
        against = 1.0
        wrong = 1 - rule.weight
        for proof, weight in self._evidence(first, second, rule):
            proofs.append(proof)
            if weight > 0:
                wrong *= 1 - weight
            else:
                against *= 1 + weight
        return round((1 - wrong) * against * doubt, 3), tuple(proofs)

    def _is_copy(self, one: KnownDataset[N], other: KnownDataset[N]) -> bool:
        """Whether one is made from the other, however far: a replica has the name of its source."""
        leads = self._lives.leads
        return leads(one.node, other.node) or leads(other.node, one.node)

    def _doubt(self, one: int, other: int, rule: MatchRule) -> float | None:
        """By how much their environments make two doubtful; None if they are two."""
        if rule in (OWN, FILE):
            return 1.0
        mine, theirs = (self._forms[number].environments for number in (one, other))
        if mine and theirs and mine != theirs:
            return None
        return 1.0 if mine == theirs else ENVIRONMENT_DOUBT.get(rule, 1.0)

    def _evidence(
        self, one: KnownDataset[N], other: KnownDataset[N], rule: MatchRule
    ) -> Iterator[tuple[Proof, float]]:
        mine, theirs = (self._columns.get(k.node, frozenset()) for k in (one, other))
        if mine and theirs:
            common = len(mine & theirs) / len(mine | theirs)
            if mine == theirs:
                text = f"the same {len(mine)} columns" if len(mine) > 1 else "the same one column"
                yield Proof("schema", text), 0.5 if len(mine) > 1 else 0.2
            elif common >= COMMON or mine <= theirs or theirs <= mine:
                text = f"{len(mine & theirs)} of {len(mine | theirs)} columns are the same"
                yield Proof("schema", text), 0.3 if len(mine & theirs) > 1 else 0.0
            elif common < STRANGE and not rule.certain:
                yield Proof("schema", "their columns differ"), -0.5
        shared = self._names(one) & self._names(other)
        if shared:
            yield Proof("symlink", f"both are called {min(shared)[1]}"), 0.8
        cluster = self._clusters.get(one.namespace)
        if cluster is not None and cluster == self._clusters.get(other.namespace):
            yield Proof("cluster", f"both are in the cluster {cluster}"), 0.8
        yield from self._life(one, other, rule)

    def _names(self, known: KnownDataset[N]) -> frozenset[Named]:
        return self._symlinks.get(known.node, frozenset()) | {(known.namespace, known.name)}

    def _life(
        self, one: KnownDataset[N], other: KnownDataset[N], rule: MatchRule
    ) -> Iterator[tuple[Proof, float]]:
        lives = self._lives
        parts = {lives.parts(one.node), lives.parts(other.node)}
        if parts == {(True, False), (False, True)}:
            yield Proof("flow", "one is only written, the other only read"), 0.5
        elif parts == {(True, True), (False, True)}:
            yield Proof("flow", "one is only read, the other is written"), 0.4
        elif parts == {(True, True)} and not rule.certain:
            yield Proof("flow", "each is written and read by itself"), -0.4
        if lives.beside(one.node, other.node) and not rule.certain:
            yield Proof("job", "one job uses both"), -0.5


def same_datasets(estate: Identity[N], rules: NameRules | None = None) -> list[Pair[N]]:
    """Pairs of datasets that may be one, the surest first; `DEFAULT_SCORE` and more is almost sure.

    Joining all pairs of a score and more never joins two that one job reads and writes, not even
    through a third.
    """
    rules = rules or NameRules()
    known = list(estate.datasets())
    forms = [_form(one.namespace, one.name) for one in known]
    own = {
        number: read
        for number, one in enumerate(known)
        if rules.read is not None
        and (read := rules.read(one.namespace, one.name)) != (one.namespace, one.name)
    }
    lives = _Lives.of(estate.uses())
    files_of = {FILE: estate.files(), LIKELY_FILE: estate.likely_files()}
    behind = {
        rule: {number: files[one.node] for number, one in enumerate(known) if one.node in files}
        for rule, files in files_of.items()
    }
    proposed = _candidates(forms, [(OWN, own), *behind.items()])
    candidates = {
        pair: rule
        for pair, rule in proposed.found.items()
        if not lives.crossed(known[pair[0]].node, known[pair[1]].node)
        and not _never(rules, known[pair[0]], known[pair[1]])
    }
    judge = _Judge(estate, lives, known, forms, candidates)
    scored = {
        pair: (found[0], rule, found[1])
        for pair, rule in candidates.items()
        if (found := judge.score(*pair, rule)) is not None
    }
    _doubt_rivals(scored, forms, proposed.company)
    return _joinable(known, forms, lives, scored)


def _never(rules: NameRules, one: KnownDataset[N], other: KnownDataset[N]) -> bool:
    return rules.never is not None and rules.never(
        (one.namespace, one.name), (other.namespace, other.name)
    )


Scored = dict[tuple[int, int], tuple[float, MatchRule, tuple[Proof, ...]]]


class _SameDatasets:
    """Datasets that would be one."""

    def __init__(self) -> None:
        self._of: dict[int, set[int]] = {}

    def of(self, number: int) -> set[int]:
        return self._of.get(number, {number})

    def join(self, one: int, other: int) -> None:
        whole = self.of(one) | self.of(other)
        self._of.update(dict.fromkeys(whole, whole))


def _doubt_rivals(
    scored: Scored, forms: Sequence[_Form], company: Mapping[tuple[int, int], list[int]]
) -> None:
    """Halve the score of names that fit several others: a short host of two long ones is either.

    A host or an address is doubtful wherever another store holds the name too. By other rules the
    evidence may decide which of several it is.
    """
    sure, partners = _SameDatasets(), _partners(scored)
    for rules in ((), (FOLDER, CATALOG, REGION, PATH), (HOST,), (ADDRESS,)):
        for pair, (score, rule, proofs) in list(scored.items()):
            if rule not in rules:
                continue
            known = sure.of(pair[0]) | sure.of(pair[1])
            if rule in (HOST, ADDRESS):
                rivals = {n for n in company[pair] if _may_be(forms, n, pair)} - known
            else:
                rivals = {
                    rival for n in pair for other, rival in partners[n] if other > score - CLEAR
                } - known - set(pair)  # fmt: skip
            if rivals:
                text = f"it could also be {len(rivals)} other{'s' if len(rivals) > 1 else ''}"
                scored[pair] = (round(score * 0.5, 3), rule, (*proofs, Proof("rivals", text)))
        for pair, (score, rule, _) in scored.items():
            if score >= DEFAULT_SCORE and (not rule.rivals or rule in rules):
                sure.join(*pair)


def _may_be(forms: Sequence[_Form], rival: int, pair: tuple[int, int]) -> bool:
    """Whether a dataset may be what a pair is: not if it alone has the word of an environment."""
    named = any(forms[number].environments for number in pair)
    return rival not in pair and (named or not forms[rival].environments)


def _partners(scored: Scored) -> dict[int, list[tuple[float, int]]]:
    found: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for (one, other), (score, rule, _) in scored.items():
        if rule.rivals:
            found[one].append((score, other))
            found[other].append((score, one))
    return found


def _joinable(
    known: Sequence[KnownDataset[N]], forms: Sequence[_Form], lives: _Lives, scored: Scored
) -> list[Pair[N]]:
    """The pairs from the surest on, without those that would join what one job reads and writes."""
    groups = _SameDatasets()
    found: list[Pair[N]] = []
    ordered = sorted(scored.items(), key=lambda one: (-one[1][0], _order(known, one[0])))
    for (one, other), (score, rule, proofs) in ordered:
        if score < LOWEST or other in groups.of(one):
            continue
        if any(
            lives.crossed(known[a].node, known[b].node)
            for a in groups.of(one)
            for b in groups.of(other)
        ):
            continue
        groups.join(one, other)
        kept, gone = sorted((one, other), key=lambda n: _preferred(known[n], forms[n], lives))
        found.append(Pair(known[gone], known[kept], score, rule.name, proofs))
    return found


def _order(known: Sequence[KnownDataset[N]], pair: tuple[int, int]) -> tuple[str, ...]:
    return tuple(part for n in pair for part in (known[n].namespace, known[n].name))


def _preferred(known: KnownDataset[N], form: _Form, lives: _Lives) -> tuple[object, ...]:
    """What orders the names of one dataset: the most specific one, then the one that is written."""
    return (
        bool(form.rules), form.is_address, not _is_path(form), not lives.parts(known.node)[0],
        -form.host.count("."), known.namespace, known.name,
    )  # fmt: skip


def _last(name: str) -> str:
    return re.split(r"[/.:]", name.rstrip("/"))[-1] or name
