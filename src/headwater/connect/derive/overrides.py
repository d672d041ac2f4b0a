"""Keys that others wrote for lineage: the transform's, our own `headwater.*`, Debezium's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.debezium import naming as debezium
from headwater.connect.derive.config_values import split
from headwater.connect.model import DEBEZIUM, TRANSFORM
from headwater.connect.transforms import lineage_options
from headwater.lineage.model import Owner, Tag

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "headwater."
# The keys of a lineage transform that declare something, each also ours with the prefix before it.
DECLARED = (
    "connector.name", "topics", "dataset.namespace", "dataset.names", "job.name", "namespace",
    "documentation", "description", "owners", "owner", "tags",
)  # fmt: skip


class Overrides:
    """Lineage that a connector's configuration declares; `headwater.*` keys win over the transform's."""

    def __init__(self, config: Mapping[str, str], connector: str = "") -> None:
        self._config = config
        self._job = debezium.job_of(config, connector)
        self._transform = lineage_options(config)

    def get(self, key: str) -> str:
        """A key of ours, or the transform's key of the same name."""
        ours = self._config.get(f"{PREFIX}{key}", "").strip()
        return ours or self._transform.get(key, "").strip()

    def where(self, key: str) -> str:
        """The key that declares it, for evidence."""
        if self._config.get(f"{PREFIX}{key}", "").strip():
            return f"{PREFIX}{key}"
        return f"transforms.{self._transform.get('alias', '*')}.{key}"

    @property
    def topics(self) -> list[str]:
        """The topics as declared."""
        return split(self.get("topics"))

    @property
    def dataset_namespace(self) -> str:
        """The namespace of the datasets outside Kafka."""
        return self.get("dataset.namespace")

    @property
    def dataset_names(self) -> list[str]:
        """Their names, in the order of the topics."""
        return split(self.get("dataset.names"))

    @property
    def job_name(self) -> str:
        """The job's name."""
        return self.get("job.name") or self.get("connector.name") or self._job[1]

    @property
    def namespace(self) -> str:
        """The job's namespace."""
        return self.get("namespace") or self._job[0]

    @property
    def joined(self) -> str:
        """Which other producer reports the same job, if this one takes its name."""
        if self._job[1]:
            return DEBEZIUM if (self.namespace, self.job_name) == self._job else ""
        # The transform takes the namespace from its worker's environment, as the agent from its own.
        reported = self._transform.get("connector.name", "").strip()
        return TRANSFORM if reported and reported == self.job_name and not self.namespace else ""

    @property
    def documentation(self) -> str:
        """What the connector is for."""
        own = self.get("documentation") or self.get("description")
        return own or self._debezium("job.description")

    @property
    def owners(self) -> tuple[Owner, ...]:
        """Who is responsible for it: `name=role` pairs."""
        text = self.get("owners") or self.get("owner") or self._debezium("job.owners")
        return tuple(Owner(name, role) for name, role in _pairs(text))

    @property
    def tags(self) -> tuple[Tag, ...]:
        """Its tags: `key=value` pairs."""
        text = self.get("tags") or self._debezium("job.tags")
        return tuple(Tag(key, value or "true", "KAFKA_CONNECT") for key, value in _pairs(text))

    def _debezium(self, key: str) -> str:
        value = self._config.get(f"{debezium.PREFIX}{key}", "").strip()
        return value if self._job[1] else ""


def _pairs(text: str) -> list[tuple[str, str]]:
    found = []
    for item in split(text):
        name, _, value = item.partition("=")
        found.append((name.strip(), value.strip()))
    return found
