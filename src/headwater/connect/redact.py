"""What must never leave a configuration: passwords, keys, tokens, users in addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.lineage import naming

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

MASK = "***"
_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|private[._-]?key|api[._-]?key|access[._-]?key"
    r"|account[._-]?key|shared[._-]?key|sas[._-]?key|master[._-]?key|jaas|user[._-]?info"
    r"|connection[._-]?string|webhook|authorization|query\.masked$|keyfile$|\.key$|(?<![a-z])(?:pass|sig|jwt|auth|sas)$",
    re.IGNORECASE,
)
# They look alike, and are names of things or switches.
_PLAIN = re.compile(
    r"\.enabled?$|credentials\.source$|\.(?:class|type|mechanism|alias|format|name)$"
    r"|tokenizer|token\.endpoint|primary\.key\.|(?:transforms|predicates)\..*\.key$",
    re.IGNORECASE,
)
# An address with a login in it is not itself a secret, only the parts below are.
_ADDRESS = re.compile(r"connection[._-]?string", re.IGNORECASE)
_PARTS = re.compile(
    r"://[^\s/@:]{0,200}:([^\s/@]{1,400})@"
    r"|(?:password|passwd|pwd|secret\w{0,20}|key|token|sig|signature)=\"?([^&;\s\",]{1,4000})",
    re.IGNORECASE,
)
_QUERY = re.compile(r"(\w://[^\s?\"']{0,2000})\?[^\s\"']+")
_PLACEHOLDER = re.compile(r"\$\{[A-Za-z][\w.\-]*:[^{}]*\}")
_HARMLESS = re.compile(r"[\w.\-/]{0,200}")
_SHORTEST = 4
_PLAIN_WORDS = frozenset({"true", "false", "none", "null", *naming.SCHEMES, *naming.STORES})
# Keys whose values name things that events must show.
_NAMING = re.compile(
    r"(?:^|[._-])(?:name|names|host|hosts|hostname|dbname|database|databases|databasename|schema"
    r"|keyspace|bucket|collection|index|user|username|prefix|topics?|url|uri|class"
    r"|table|tables|whitelist|include\.list)$",
    re.IGNORECASE,
)
_NAMELIKE = re.compile(r"[A-Za-z][A-Za-z_.\-]{0,30}\d{0,4}")
_TAIL = re.compile(r"[?;].*$", re.DOTALL)


def is_secret(key: str, declared: Collection[str] = ()) -> bool:
    """Whether a key's value is a secret: declared PASSWORD by the plug-in, or so called."""
    if key in declared:
        return True
    return bool(_SECRET.search(key)) and not _PLAIN.search(key)


def secrets(config: Mapping[str, str], declared: Collection[str] = ()) -> tuple[str, ...]:
    """The values in a configuration that must not be seen anywhere, longest first."""
    found = {
        value.strip()
        for key, value in config.items()
        if is_secret(key, declared)
        and not (_ADDRESS.search(key) and "://" in value)
        and len(value.strip()) >= _SHORTEST
    }
    for value in config.values():
        found.update(_PLACEHOLDER.findall(value))
        parts = (part for match in _PARTS.findall(value) for part in match)
        found.update(part for part in parts if len(part) >= _SHORTEST)
    kept = (v for v in found if v.lower() not in _PLAIN_WORDS and not _said(v, config))
    return tuple(sorted(kept, key=len, reverse=True))


def _said(value: str, config: Mapping[str, str]) -> bool:
    """Whether a password is also the name of something, as in a database `shop` with that password.

    Hiding the name would hide the dataset, and the name alone does not say that it opens anything.
    """
    texts = (
        _TAIL.sub("", naming.redact(text))
        for key, text in config.items()
        # The path of a web address may itself be a secret.
        if value in text and _NAMING.search(key) and not is_secret(key)
        and not text.lower().startswith("http")
    )  # fmt: skip
    return named(value, texts)


def named(value: str, names: Iterable[str]) -> bool:
    """Whether a password stands as a word in one of the names."""
    if not _NAMELIKE.fullmatch(value):
        return False
    word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z])")
    return any(word.search(name) for name in names)


def scrub(text: str, hidden: Collection[str] = ()) -> str:
    """A text without credentials: the known values first, then whatever looks like one."""
    for value in hidden:
        if value in text:
            text = text.replace(value, MASK)
    return naming.redact(_QUERY.sub(rf"\1?{MASK}", _PLACEHOLDER.sub(MASK, text)))


def scrub_all(value: Any, hidden: Collection[str] = (), seen: dict[str, str] | None = None) -> Any:
    """Plain values with every text in them scrubbed, so that equal texts stay equal."""
    seen = {} if seen is None else seen
    if isinstance(value, str):
        if value not in seen:
            plain = _HARMLESS.fullmatch(value) and not any(item in value for item in hidden)
            seen[value] = value if plain else scrub(value, hidden)
        return seen[value]
    if isinstance(value, dict):
        return {scrub_all(k, hidden, seen): scrub_all(v, hidden, seen) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [scrub_all(item, hidden, seen) for item in value]
    return value


def safe_config(config: Mapping[str, str], declared: Collection[str] = ()) -> dict[str, str]:
    """A configuration that may be shown: every secret replaced, the rest without credentials."""
    hidden = secrets(config, declared)
    return {
        key: MASK if is_secret(key, declared) else scrub(value, hidden)
        for key, value in config.items()
    }
