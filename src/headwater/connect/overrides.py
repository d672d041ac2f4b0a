"""Keys that others wrote for lineage: the transform's, our own `headwater.*`, Debezium's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import reported
from .transforms import lineage_options
from .values import split

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "headwater."


class Overrides:
    """What a connector's configuration says about its own lineage; plain keys win."""

    def __init__(self, config: Mapping[str, str], connector: str = "") -> None:
        self._config = config
        self._job = reported.job(config, connector)
        self._transform = lineage_options(config)

    def get(self, key: str) -> str:
        """A key of ours, or the transform's key of the same name."""
        ours = self._config.get(f"{PREFIX}{key}", "").strip()
        return ours or self._transform.get(key, "").strip()

    def where(self, key: str) -> str:
        """Which key said it."""
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
        same = (self.namespace, self.job_name) == self._job
        return "debezium" if self._job[1] and same else ""

    @property
    def documentation(self) -> str:
        """What the connector is for."""
        own = self.get("documentation") or self.get("description")
        return own or self._debezium("job.description")

    @property
    def owners(self) -> tuple[tuple[str, str], ...]:
        """Who answers for it: `name=role` pairs."""
        return _pairs(self.get("owners") or self.get("owner") or self._debezium("job.owners"))

    @property
    def tags(self) -> tuple[tuple[str, str], ...]:
        """Its tags: `key=value` pairs."""
        return _pairs(self.get("tags") or self._debezium("job.tags"), "true")

    def _debezium(self, key: str) -> str:
        told = self._config.get(f"{reported.PREFIX}{key}", "").strip()
        return told if self._job[1] else ""


def _pairs(text: str, default: str = "") -> tuple[tuple[str, str], ...]:
    found = []
    for item in split(text):
        name, _, value = item.partition("=")
        found.append((name.strip(), value.strip() or default))
    return tuple(found)
