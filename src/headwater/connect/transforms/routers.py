"""Transforms that choose the topic's name."""

from __future__ import annotations

import re

from headwater.connect.derive.java_regex import PatternError, pattern

from .base import TopicName, TransformStep

ANY = ".+"


class TopicRouter(TransformStep):
    """A transform that changes nothing but the topic's name."""

    routes = True


class RegexRouter(TopicRouter):
    """Renames a topic if its whole name matches, as `Matcher.matches()` has it."""

    keys = ("regex", "replacement")

    def setup(self) -> None:
        """Compile the expression; a bad one stops the connector, so it is an error here too."""
        self.expression = pattern(self.options.get(self.keys[0], ""))
        self.replacement = self.options.get(self.keys[1], "")

    def route(self, name: TopicName) -> TopicName | None:
        """Rename one name; of a pattern only that it was routed is known."""
        if not name.exact:
            return TopicName("", ANY, open=True)
        if not self.expression.matches(name.text):
            return name
        try:
            return TopicName(self.expression.replace_first(name.text, self.replacement))
        except PatternError:  # Connect would fail here too: nothing is renamed
            return name


class LogicalRouter(RegexRouter):
    """Debezium's router of many tables into one topic."""

    keys = ("topic.regex", "topic.replacement")


class TimestampRouter(TopicRouter):
    """Adds the record's time to the name: a new topic every so often."""

    def route(self, name: TopicName) -> TopicName | None:
        """All the names to come, under the part of them that stays."""
        shape = self.get("topic.format", default="${topic}-${timestamp}")
        clock = _clock(self.get("timestamp.format", default="yyyyMMdd"))
        if not name.exact:
            return TopicName("", ANY, open=True)
        if "${timestamp}" not in shape:
            return TopicName(shape.replace("${topic}", name.text))
        rest = shape.replace("${topic}", name.text)
        parts = [re.escape(part) for part in rest.split("${timestamp}")]
        return TopicName(rest.replace("${timestamp}", "").strip("-_./: "), clock.join(parts))


class RowRouter(TopicRouter):
    """A router that takes the topic from each record: a field, a header or a script."""

    def route(self, name: TopicName) -> TopicName | None:
        """Any name at all."""
        return TopicName("", ANY, open=True)


class Filter(TransformStep):
    """Drops the records of its predicate; without one, all."""

    routes = True

    def route(self, name: TopicName) -> TopicName | None:
        """Nothing comes through."""
        return None


def _clock(shape: str) -> str:
    """An expression for the times of one of Java's date formats."""
    if re.search(r"MMM|E|[aGzZXVO']", shape):
        return ANY
    return re.sub(r"[A-Za-z]+", r"\\d+", re.escape(shape)).replace("\\\\d", "\\d")


_CONFLUENT = "io.confluent.connect.transforms."
STEPS: dict[str, type[TransformStep]] = {
    "org.apache.kafka.connect.transforms.RegexRouter": RegexRouter,
    "io.confluent.connect.cloud.transforms.TopicRegexRouter": RegexRouter,
    "org.apache.kafka.connect.transforms.TimestampRouter": TimestampRouter,
    "org.apache.kafka.connect.transforms.Filter": Filter,
    f"{_CONFLUENT}MessageTimestampRouter": TimestampRouter,
    f"{_CONFLUENT}ExtractTopic": RowRouter,
    f"{_CONFLUENT}TopicRegexRouter": RegexRouter,
    "io.debezium.transforms.ContentBasedRouter": RowRouter,
}
