"""Finds and masks credentials in a whole event before anything of it is kept.

`suspicious` is cheap and may cry wolf; `clean` reads every text and changes only what must go.
"""

from __future__ import annotations

import json
import re
from typing import Any

from headwater.lineage.naming import redact

__all__ = ["clean", "clean_value", "suspicious"]

MASK = "***"
_WORDS = (b"passw", b"secret", b"token", b"credential", b"key", b"pwd")
_LOGIN = re.compile(rb"://[^\s/?#\"'<>]*@|://[^\s\"'<>@]{1,300}:[^\s\"'<>@]{1,256}@")
_WORD = (
    r"(?:passwords?|passwd|passphrase|pwd|secrets?|credentials?|api[_.\-]?keys?"
    r"|(?:access|account|private|secret|shared|sas|encryption)[_.\-]?keys?"
    r"|(?:access|auth|bearer|refresh|session|security|api|id|oauth)[_.\-]?tokens?|jaas\.config)"
)
_PAIR = re.compile(rf"(?i){_WORD}[\w.\-]{{0,40}}\"?\s{{0,8}}[:=]".encode())
_KEY = re.compile(rf"(?i)(?:^|[^a-z]|(?<=[a-z])(?=[A-Z])){_WORD}$")


def suspicious(data: bytes, *, keys: bool = True) -> bool:
    """Whether a piece of JSON may hold a credential; `keys`: also under a key that tells."""
    if b"@" in data and b"://" in data and _LOGIN.search(data):
        return True
    if b"\\" in data and (b"\\/" in data or b"\\u" in data):
        return True
    if not keys or (b":" not in data and b"=" not in data):
        return False
    low = data.lower()
    for word in _WORDS:
        if word in low:
            return _PAIR.search(data) is not None
    return False


def clean(raw: bytes) -> bytes:
    """The same JSON with every credential masked; the very same bytes if it has none."""
    value = json.loads(raw)
    cleaned = clean_value(value)
    if cleaned == value:
        return raw
    return json.dumps(cleaned, separators=(",", ":"), ensure_ascii=False).encode()


def clean_value(value: Any) -> Any:
    """A decoded value with every credential masked."""
    if isinstance(value, str):
        return redact(value) if "://" in value or "jdbc:" in value else value
    if isinstance(value, list):
        return [clean_value(item) for item in value]
    if isinstance(value, dict):
        return {_key(key): _member(key, item) for key, item in value.items()}
    return value


def _key(key: str) -> str:
    return redact(key) if "://" in key and "@" in key else key


def _member(key: str, value: Any) -> Any:
    if isinstance(value, str) and value and _KEY.search(key):
        return MASK
    return clean_value(value)
