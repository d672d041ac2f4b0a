"""A record of what a derivation asked of the world, by which it is known to be outdated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.connect.catalog import CatalogError
from headwater.connect.kafka import KafkaError
from headwater.connect.registry import RegistryError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from headwater.connect.model import Connector, Table, TopicSchema


class Recorder:
    """A world that remembers what was asked, so that a change in the answers can be seen."""

    def __init__(self, world: Any) -> None:
        self._world = world
        self._asked: list[tuple[Callable[[], Any], Any]] = []
        self.unsure = False
        """Whether somebody who should know could not be asked."""
        self.unheard = False
        """Whether even the same answer, once it comes, would be news."""

    def _record(self, ask: Callable[[], Any], otherwise: Any = None) -> Any:
        try:
            answer = ask()
        except (RegistryError, KafkaError):
            self.unsure = self.unheard = True
            answer = otherwise
        except CatalogError:
            self.unsure = True
            answer = otherwise
        self._asked.append((ask, answer))
        return answer

    @property
    def bootstrap(self) -> str | None:
        found: str | None = self._record(lambda: self._world.bootstrap)
        return found

    @property
    def cluster_id(self) -> str | None:
        found: str | None = self._record(lambda: self._world.cluster_id)
        return found

    @property
    def bootstraps(self) -> tuple[str, ...]:
        found: tuple[str, ...] = self._record(lambda: self._world.bootstraps, ())
        return found

    def topics(self) -> Collection[str] | None:
        found: Collection[str] | None = self._record(self._world.topics)
        return found

    def topic_schema(self, topic: str, connector: Connector) -> TopicSchema | None:
        found: TopicSchema | None = self._record(lambda: self._world.topic_schema(topic, connector))
        return found

    def table(self, catalog: Mapping[str, str], name: str) -> Table | None:
        kept = dict(catalog)
        found: Table | None = self._record(lambda: self._world.table(kept, name))
        return found

    def changed(self) -> bool:
        """Whether the world would answer otherwise now."""
        for ask, before in self._asked:
            try:
                if ask() != before:
                    return True
            except (RegistryError, KafkaError, CatalogError):
                continue
        return False
