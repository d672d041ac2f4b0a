"""One connector being read: its keys, the world around it, and what was in the way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.lineage import naming

from .families.base import Place
from .model import Connector, Dataset, Evidence
from .patterns import PatternError, pattern
from .redact import named, scrub, secrets
from .transforms import Chain
from .values import PLACEHOLDER, mark, placeheld, split, split_patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from headwater.lineage.naming import DatasetName

    from .model import Role, Settings, Symlink, World
    from .patterns import Pattern

_HINTS = (
    "openlineage.integration.dataset.kafka.bootstrap.servers",
    "schema.history.internal.kafka.bootstrap.servers",
    "database.history.kafka.bootstrap.servers",
    "confluent.topic.bootstrap.servers",
    "kafka.endpoint",
)
_MOST = 2_000


class Plan:
    """A connector's configuration with its placeholders marked; every key read is remembered."""

    def __init__(self, connector: Connector, world: World, settings: Settings) -> None:
        self.connector = connector
        self.world = world
        self.settings = settings
        self.config = mark(connector.config)
        self.chain = Chain(self.config)
        self.problems: list[str] = list(self.chain.problems)
        self.read: dict[str, None] = {}
        self.hidden = secrets(connector.config)
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
            self.hidden = tuple(value for value in self.hidden if not named(value, names))

    def used(self, key: str) -> None:
        """Remember a key that was read in another way."""
        self.read[key] = None

    def problem(self, text: str) -> None:
        """Say once what could not be found out."""
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
        """A dataset's name, or None with a problem when the configuration cannot say it."""
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

    def place(self, store: str, kind: str = "TABLE", **parts: str | int | None) -> Place | None:
        """A dataset of a store from its parts; a store's own part `kind` is given as `kind_`."""
        parts = {key.rstrip("_"): value for key, value in parts.items()}
        port = str(parts.get("port") or "")
        if port and not port.isdigit():
            self.problem(self._unresolved() or "a port is not a number, so no dataset is named")
            return None
        found = self.name(lambda: naming.build(store, **parts))
        return Place(found, kind) if found else None

    def uri(self, text: str, kind: str = "FILE") -> Place | None:
        """A dataset by its address."""
        found = self.name(lambda: naming.from_uri(text))
        return Place(found, kind) if found else None

    def _unresolved(self) -> str:
        held = [key for key in placeheld(self.connector.config) if key in self.read]
        if not held:
            return ""
        return f"{', '.join(held)}: only the worker can resolve the value, so no dataset is named"

    # Kafka

    def bootstrap(self) -> tuple[str, Evidence]:
        """The Kafka cluster that the connector's topics live on, and who said so."""
        side = "producer" if self.role == "source" else "consumer"
        key = f"{side}.override.bootstrap.servers"
        if (value := self.config.get(key, "")) and PLACEHOLDER not in value:
            return value, Evidence("config key", key)
        if self.world.bootstrap:
            return self.world.bootstrap, Evidence("rule", "the Connect cluster's Kafka address")
        for key in _HINTS:
            if (value := self.config.get(key, "")) and PLACEHOLDER not in value:
                return value, Evidence("config key", key)
        return "", Evidence("rule", "the Connect cluster's Kafka address is not known")

    @property
    def role(self) -> Role | None:
        """Source or sink, as Connect says; a preview may have to take the plug-in's word."""
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
        home = self.world.bootstraps or ((self.world.bootstrap,) if self.world.bootstrap else ())
        ours = not servers or any(self._namespace(item) == namespace for item in home)
        return Dataset(
            namespace,
            name,
            kind="TOPIC",
            cluster_id=(self.world.cluster_id or "") if ours else "",
            bootstraps=tuple(home) if ours else (),
            evidence=tuple(evidence),
        )

    def _namespace(self, servers: str) -> str:
        if servers:
            try:
                return naming.kafka_namespace(servers)
            except naming.NamingError as error:
                self.problem(f"the Kafka address: {error}")
        if self.world.cluster_id:
            return f"kafka://{self.world.cluster_id}"
        self.problem("the Kafka address is not known: topics are named without their cluster")
        return "kafka"


def templated(text: str, topic: str) -> str:
    """A name in which `${topic}` stands for the topic."""
    return text.replace("${topic}", topic)


def symlinked(place: Place, *links: Symlink) -> Place:
    """A dataset with more names, none of them its own."""
    from dataclasses import replace

    extra = [link for link in links if (link.namespace, link.name) != place.id]
    return replace(place, symlinks=(*place.symlinks, *extra))


_WORD = re.compile(r"[^a-zA-Z0-9_]")


def sanitised(text: str) -> str:
    """A name of letters, digits and underscores only."""
    return _WORD.sub("_", text)
