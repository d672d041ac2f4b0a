"""Take credentials out of any text: URLs, JDBC, JAAS, JSON, properties, headers, log lines."""

from __future__ import annotations

import re

MASK = "***"

# In these schemes the part before the @ is a container, not a user.
CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs")

_WORD = (
    r"(?:passwords?|passwd|passphrase|pwd|secrets?|token(?!iz)s?|signature|credentials?"
    r"|authorization|jaas\.config|user\.?info|api[_.\-]?key"
    r"|(?:access|account|private|shared|sas|encryption|master|license)[_.\-]?(?:access[_.\-]?)?key"
    r"|(?<![a-z])(?:sig|pass|pw|jwt|sas)(?![a-z]))"
)
_VALUE = (
    r"(?:\\\"(?:\\\\\\\"|[^\"\\]|\\[^\"])*(?:\\?\"|$)"  # JSON inside JSON
    r"|\"(?:[^\"\\]|\\.)*(?:\"|$)"
    r"|'(?:[^'\\]|\\.)*(?:'|$)"
    r"|\{[^{}\n]*\}"
    r"|(?:[^\s\"'&;<]|<(?!/)|[\"'](?![\s,}\]:)]|$))+)"
)
_SEPARATOR = r"(?:\\?[\"'])?\s{0,8}(?:=>|[=:>]|%3d)\s{0,8}"
_KIND = r"(?:(?:basic|bearer|digest|negotiate)\s+)?"
_PAIR = re.compile(rf"({_WORD}[\w.\-]{{0,60}}{_SEPARATOR}{_KIND})({_VALUE})", re.IGNORECASE)
_FLAG = re.compile(rf"((?<![\w\-])--?[\w.\-]{{0,30}}{_WORD}\s+)({_VALUE})", re.IGNORECASE)
_JAAS = re.compile(r"(jaas\.config\s{0,8}[=:]\s{0,8})(?![\"'\\])[^\n]+", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)\s+[a-z0-9+/=._~\-]{8,}", re.IGNORECASE)
_USER = re.compile(r"://([^\s/?#\"'<>]*)@")
# A password with an unencoded / or ?: what follows the colon is then no port.
_ODD_USER = re.compile(r"://(?!\[)[^\s/?#:@]*:(?!\d*(?:[/?#,]|$))[^\s\"'<>@]{1,256}@")
_ORACLE = re.compile(r"(jdbc:oracle:\w{1,10}:)[^\s@/]{1,128}/\S{0,256}@", re.IGNORECASE)
_QUERY = re.compile(r"[?#][\w.%\-\[\]$]*=.*$", re.DOTALL)
_PEM = re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|$)", re.DOTALL)
_AWS_KEY = re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")
_JWT = re.compile(r"\beyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?")


def redact(text: str) -> str:
    """Replace every credential in the text by `***`; text without any comes back as it was."""
    text = _PEM.sub(MASK, text)
    text = _JAAS.sub(rf"\1{MASK}", text)
    text = _user_parts(text, f"{MASK}@")
    text = _ORACLE.sub(rf"\1{MASK}@", text)
    text = _PAIR.sub(rf"\1{MASK}", text)
    text = _FLAG.sub(rf"\1{MASK}", text)
    text = _BEARER.sub(rf"\1 {MASK}", text)
    text = _AWS_KEY.sub(MASK, text)
    return _JWT.sub(MASK, text)


def strip_query(path: str) -> str:
    """Cut `?a=b` and `#a=b`; a `?` or `#` that is part of a file name or a pattern stays."""
    return _QUERY.sub("", path) if "?" in path or "#" in path else path


def strip_users(text: str) -> str:
    """Drop `user:password@` from every URL in the text, containers of Azure paths excepted."""
    return _user_parts(text, "") if "@" in text else text


def _user_parts(text: str, mark: str) -> str:
    text = _USER.sub(lambda match: _user(match, mark), text)
    return _ODD_USER.sub(f"://{mark}", text)


def _user(match: re.Match[str], mark: str) -> str:
    before = match.string[max(0, match.start() - 6) : match.start()].lower()
    if ":" not in match[1] and before.endswith(CONTAINER_SCHEMES):
        return match[0]
    return f"://{mark}"
