"""What a client's own plan (protobuf) has and no explain text shows: reads, literals, functions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.spark.remote.explain.layout import UnclearText

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_MESSAGES = 100_000
_UNAMBIGUOUS = re.compile(r"^[\w .:/$%@+*=!?&;~^|<>'\"\\-]*$")
_KEYWORDS = re.compile(r"(?:^|[ ])(?:CASE|WHEN|THEN|ELSE|END|AS|else|if|lambda|FILTER)(?:$|[ ])")
_QUOTED = re.compile(r"'((?:[^'\\]|\\.|'')*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b"}
_SHORTEST = 3


class Read(NamedTuple):
    """A table or a data source that the client names."""

    name: str
    format: str
    options: dict[str, str]
    paths: tuple[str, ...]
    relation: Any


class ClientPlan:
    """Reads, literals and functions in the messages of one command."""

    def __init__(self) -> None:
        self.reads: list[Read] = []
        self.texts: dict[str, None] = {}
        self.functions: dict[str, set[int]] = {}
        self.statements: list[str] = []
        self._seen = 0

    def add(self, message: Any) -> None:
        """Take in a message and all within it."""
        waiting = [message]
        while waiting:
            one = waiting.pop()
            self._seen += 1
            if self._seen > MAX_MESSAGES:
                raise UnclearText("the client's plan is too large")
            self._note(one)
            below = []
            for field, value in one.ListFields():
                if field.type != field.TYPE_MESSAGE:
                    continue
                if isinstance(value, type(one)) or hasattr(value, "ListFields"):
                    below.append(value)
                elif hasattr(value, "values"):
                    below += [item for item in value.values() if hasattr(item, "ListFields")]
                else:
                    below += list(value)
            waiting += reversed(below)

    def _note(self, one: Any) -> None:
        name = one.DESCRIPTOR.full_name.removeprefix("spark.connect.")
        if name == "Relation" and one.WhichOneof("rel_type") == "read":
            self._read(one)
        elif name == "Expression.Literal" and one.WhichOneof("literal_type") == "string":
            self.texts[one.string] = None
        elif name in ("SQL", "SqlCommand"):
            for text in filter(None, (getattr(one, "query", ""), getattr(one, "sql", ""))):
                self.statements.append(text)
                self.texts.update(dict.fromkeys(quoted(text)))
        elif name == "Expression.ExpressionString":
            self.texts.update(dict.fromkeys(quoted(one.expression)))
        elif (
            name == "CommonInlineUserDefinedFunction" and one.WhichOneof("function") == "python_udf"
        ):
            kinds = self.functions.setdefault(one.function_name.lower(), set())
            kinds.add(int(one.python_udf.eval_type))

    def _read(self, relation: Any) -> None:
        read = relation.read
        if read.WhichOneof("read_type") == "named_table":
            table = read.named_table
            name = table.unparsed_identifier
            self.reads.append(Read(name, "", dict(table.options), (), relation))
        elif read.WhichOneof("read_type") == "data_source":
            source = read.data_source
            options = {key.lower(): value for key, value in source.options.items()}
            found = tuple(source.paths) or tuple(filter(None, [options.get("path", "")]))
            self.reads.append(Read("", source.format.lower(), options, found, relation))

    def mask_literals(self, text: str) -> tuple[str, dict[str, str]]:
        """A text whose ambiguous literals are replaced by marks, and the literals by mark."""
        kept: dict[str, str] = {}
        for literal in sorted(filter(is_ambiguous, self.texts), key=len, reverse=True):
            if literal not in text or not literal.strip(",; "):
                # Commas alone make arguments that are empty, which change nothing.
                continue
            if re.search(r"#\d", literal) or len(literal) < _SHORTEST:
                raise UnclearText("a constant looks like a part of the plan")
            mark = f"\u27e6{len(kept)}\u27e7"
            kept[mark] = literal
            text = text.replace(literal, mark)
        return text, kept


def is_ambiguous(literal: str) -> bool:
    """Whether a constant could be taken for brackets, names or words of a plan."""
    return not _UNAMBIGUOUS.match(literal) or bool(_KEYWORDS.search(literal))


def quoted(sql: str) -> Iterable[str]:
    """The constants in a statement."""
    for match in _QUOTED.finditer(sql):
        text = match[1] if match[1] is not None else match[2]
        text = text.replace("''", "'") if match[1] is not None else text
        yield re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.DOTALL)
