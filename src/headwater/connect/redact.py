"""What must never leave a configuration: passwords, keys, tokens, users in addresses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.lineage import naming

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

MASK = "***"
_SECRET = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|private[._-]?key|api[._-]?key|access[._-]?key"
    r"|account[._-]?key|shared[._-]?key|sas[._-]?key|master[._-]?key|jaas|user[._-]?info"
    r"|connection[._-]?string|authorization|keyfile$|\.key$|(?<![a-z])(?:pass|sig|jwt|auth|sas)$",
    re.IGNORECASE,
)
# They look alike, and are names of things or switches.
_PLAIN = re.compile(
    r"\.enabled?$|credentials\.source$|\.(?:class|type|mechanism|alias|format|name)$"
    r"|tokenizer|token\.endpoint|primary\.key\.|(?:transforms|predicates)\..*\.key$",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"\$\{[A-Za-z][\w.\-]*:[^{}]*\}")
_SHORTEST = 4


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
        if is_secret(key, declared) and len(value.strip()) >= _SHORTEST
    }
    found |= {match for value in config.values() for match in _PLACEHOLDER.findall(value)}
    plain = {"true", "false", "none", "null"}
    return tuple(sorted((v for v in found if v.lower() not in plain), key=len, reverse=True))


def scrub(text: str, hidden: Collection[str] = ()) -> str:
    """A text without credentials: the known values first, then whatever looks like one."""
    for value in hidden:
        if value in text:
            text = text.replace(value, MASK)
    return naming.redact(_PLACEHOLDER.sub(MASK, text))


def safe_config(config: Mapping[str, str], declared: Collection[str] = ()) -> dict[str, str]:
    """A configuration that may be shown: every secret replaced, the rest without credentials."""
    return {
        key: MASK if is_secret(key, declared) else scrub(value) for key, value in config.items()
    }
