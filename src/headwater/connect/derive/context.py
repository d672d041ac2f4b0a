"""One connector while its lineage is derived: keys, metadata, and the problems met."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from headwater.connect.derive.config_values import (
    PLACEHOLDER,
    mark,
    split,
    split_patterns,
    unresolved_keys,
)
from headwater.connect.derive.family import ExternalDataset
from headwater.connect.derive.java_regex import PatternError, pattern
from headwater.connect.derive.mapping import MappingRule
from headwater.connect.transforms import Chain
from headwater.lineage import naming
from headwater.lineage.model import Dataset, Evidence
from headwater.lineage.secrets import is_name, scrub, secret_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headwater.connect.derive.java_regex import Pattern
    from headwater.connect.derive.metadata import Metadata
    from headwater.connect.model import Connector, Role
    from headwater.lineage.model import DatasetType
    from headwater.lineage.naming import DatasetName

_HINTS = (
    "openlineage.integration.dataset.kafka.bootstrap.servers",
    "schema.history.internal.kafka.bootstrap.servers",
    "database.history.kafka.bootstrap.servers",
    "confluent.topic.bootstrap.servers",
    "kafka.endpoint",
)
_MOST = 2_000


class DeriveSettings(msgspec.Struct, frozen=True):
    """How one Connect cluster's connectors are to be read."""

    namespace: str = "default"
    rules: tuple[MappingRule, ...] = ()
    internal: bool = False
    """Whether bookkeeping connectors (MirrorMaker's heartbeats and checkpoints) show datasets."""


class Context:
    """A connector's configuration with its placeholders marked; every key read is remembered."""

    def __init__(self, connector: Connector, metadata: Metadata, settings: DeriveSettings) -> None:
        self.connector = connector
        self.metadata = metadata
        self.settings = settings
        self.config = mark(connector.config)
        self.chain = Chain(self.config)
        self.problems: list[str] = list(self.chain.problems)
        self.read: dict[str, None] = {}
        self.hidden = secret_values(connector.config)
        self.reveal(connector.active_topics)

    # keys

    def get(self, *keys: str, default: str = "") -> str:
        """The first of the keys that has a value, without blanks around it."""
        for key in keys:
            if value := self.config.get(key, "").strip():
                self.read[key] = None
                return value
        return default

    def flag(self, *keys: str, default: bool = False) -> bool:
        """A key that is true or false."""
        return self.get(*keys, default=str(default)).lower() == "true"

    def names(self, *keys: str) -> list[str]:
        """A key that is a list separated by commas."""
        return split(self.get(*keys))[:_MOST]

    def patterns(self, *keys: str) -> list[str]:
        """A key that is a list of expressions."""
        return split_patterns(self.get(*keys))[:_MOST]

    def reveal(self, topics: Iterable[str]) -> None:
        """Topics were seen or are listed, so that a password of the same name hides nothing."""
        if self.hidden:
            names = tuple(topics)
            self.hidden = tuple(value for value in self.hidden if not is_name(value, names))

    def used(self, key: str) -> None:
        """Remember a key that was read in another way."""
        self.read[key] = None

    def problem(self, text: str) -> None:
        """Report once what could not be found out."""
        if text not in self.problems:
            self.problems.append(text)

    def expression(self, key: str, text: str | None = None, **flags: bool) -> Pattern | None:
        """A key's regular expression, or None with a problem when it is none."""
        value = self.get(key) if text is None else text
        if not value:
            return None
        try:
            return pattern(value, **flags)
        except PatternError as error:
            self.problem(f"{key}: {error}")
            return None

    # datasets

    def name(self, make: Callable[[], DatasetName]) -> DatasetName | None:
        """A dataset's name, or None with a problem when the configuration does not determine it."""
        try:
            found = make()
        except (naming.NamingError, ValueError) as error:
            self.problem(self._unresolved() or str(error))
            return None
        if PLACEHOLDER in found.namespace or PLACEHOLDER in found.name:
            self.problem(self._unresolved() or "a name depends on a value only the worker knows")
            return None
        if scrub(found.namespace, self.hidden) != found.namespace or (
            scrub(found.name, self.hidden) != found.name
        ):
            self.problem("a name would hold a credential, so no dataset is named")
            return None
        return found

    def place(
        self, store: str, kind: DatasetType = "TABLE", /, **parts: str | int | None
    ) -> ExternalDataset | None:
        """A dataset of a store from its parts, as `naming.build` takes them."""
        port = str(parts.get("port") or "")
        if port and not port.isdigit():
            self.problem(self._unresolved() or "a port is not a number, so no dataset is named")
            return None
        found = self.name(lambda: naming.build(store, **parts))
        return ExternalDataset.of(found, kind) if found else None

    def uri(self, text: str, kind: DatasetType = "FILE") -> ExternalDataset | None:
        """A dataset by its address."""
        found = self.name(lambda: naming.from_uri(text))
        return ExternalDataset.of(found, kind) if found else None

    def _unresolved(self) -> str:
        held = [key for key in unresolved_keys(self.connector.config) if key in self.read]
        if not held:
            return ""
        return f"{', '.join(held)}: only the worker can resolve the value, so no dataset is named"

    # Kafka

    def bootstrap(self) -> tuple[str, Evidence]:
        """The Kafka cluster that the connector's topics live on, and the evidence for it."""
        side = "producer" if self.role == "source" else "consumer"
        key = f"{side}.override.bootstrap.servers"
        if (value := self.config.get(key, "")) and PLACEHOLDER not in value:
            return value, Evidence("config key", key)
        if self.metadata.bootstrap:
            return self.metadata.bootstrap, Evidence("rule", "the Connect cluster's Kafka address")
        for key in _HINTS:
            if (value := self.config.get(key, "")) and PLACEHOLDER not in value:
                return value, Evidence("config key", key)
        return "", Evidence("rule", "the Connect cluster's Kafka address is not known")

    @property
    def role(self) -> Role | None:
        """Source or sink, as Connect reports; in a preview, as the plug-in is."""
        return self.connector.type or self.assumed_role

    assumed_role: Role | None = None
    target: str = ""
    raw: str = ""
    """The topic that a sink's destination is being worked out for, as it is in Kafka."""

    def topic(
        self, name: str, evidence: Sequence[Evidence] = (), bootstrap: str | None = None
    ) -> Dataset:
        """A topic as a dataset; on this Connect cluster's Kafka unless another is given."""
        servers = self.bootstrap()[0] if bootstrap is None else bootstrap
        namespace = self._namespace(servers)
        home = self.metadata.bootstraps or (
            (self.metadata.bootstrap,) if self.metadata.bootstrap else ()
        )
        ours = not servers or any(self._namespace(item) == namespace for item in home)
        return Dataset(
            namespace,
            name,
            type="TOPIC",
            cluster_id=(self.metadata.cluster_id or "") if ours else "",
            bootstrap=tuple(home) if ours else (),
            evidence=tuple(evidence),
        )

    def _namespace(self, servers: str) -> str:
        if servers:
            try:
                return naming.kafka_namespace(servers)
            except naming.NamingError as error:
                self.problem(f"the Kafka address: {error}")
        if self.metadata.cluster_id:
            return f"kafka://{self.metadata.cluster_id}"
        self.problem("the Kafka address is not known: topics are named without their cluster")
        return "kafka"


def templated(text: str, topic: str) -> str:
    """A name in which `${topic}` stands for the topic."""
    return text.replace("${topic}", topic)


_WORD = re.compile(r"[^a-zA-Z0-9_]")


def sanitised(text: str) -> str:
    """A name of letters, digits and underscores only."""
    return _WORD.sub("_", text)
