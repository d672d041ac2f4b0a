"""What is a secret, and how it is masked: one vocabulary for emitters, agent and server.

`redact` masks credentials in free text: URLs, JDBC, JAAS, SQL, JSON, properties, headers, log lines.
`clean` masks them in a JSON document, by key and by text; `holds_secret` decides at little cost
whether a document has any. `scrub` and the functions around it mask the secrets of a connector's
configuration wherever their values turn up.

Text is read in time linear in its length: every repetition is bounded, or cannot start again inside
what it has read.
"""

from __future__ import annotations

import json
import logging
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

__all__ = [
    "CONTAINER_SCHEMES",
    "MASK",
    "MaskingFormatter",
    "clean",
    "clean_value",
    "holds_secret",
    "is_name",
    "is_secret",
    "redact",
    "safe_config",
    "scrub",
    "scrub_all",
    "secret_values",
    "strip_query",
    "strip_users",
]

MASK = "***"

# In these schemes the part before the @ is a container, not a user.
CONTAINER_SCHEMES = ("abfs", "abfss", "wasb", "wasbs")

# Keys. They are compared in lower case with `_` between their words: `AccountKey` is account_key.
_PASSWORDS = r"passwords?|passwd|passphrase|passcode|pwd"
_KEYS = (
    r"(?:api|app|secret|access|account|private|shared|sas|encryption|master|signing|storage|auth"
    r"|subscription|license|fernet|shared_access|secret_access|client_access)_?keys?"
)
_TOKENS = (
    r"(?:access|auth|bearer|refresh|session|security|api|id|oauth2?|bot|client|service|personal"
    r"|deploy|vault|sas|csrf|jwt|web_identity)_?tokens?"
)
# After one of these words the key names or describes a secret and does not hold it.
_ABOUT = (
    r"(?:names?|refs?|files?|filename|path|dir|directory|location|type|class|provider|source|url|uri"
    r"|endpoint|alias|format|mechanism|enabled?|required|length|count|size|policy|expir\w*|ttl|age"
    r"|updated|changed|created|rotat\w*|reset|at|date|time|version|algorithm|encoder|field|fields"
    r"|column|columns|strength|hint|prompt|manager|store|attempts?|callback|handler|generator|env"
    r"|parser|validator|required|option|options|set|is|not|id|status|state|scope|scopes|audience)"
)
_AGAIN = r"(?:_(?:value|plain|json|text|base64|b64|hash|hex|id|old|new|current|\d{1,4}))*"
_HELD = re.compile(
    rf"(?:{_PASSWORDS})(?![a-z])(?!\w*_{_ABOUT}$)"
    rf"|(?:^|[a-z0-9_])(?:secrets?|credentials?|jaas_config|authorization|auth_user_?info|{_TOKENS})"
    rf"{_AGAIN}$"
    rf"|(?:^|[_\d]|aws|my|client)(?:(?:api|secret|private)_?keys?|secret_?access_?keys?"
    rf"|access_?key_?id){_AGAIN}$"
    r"|account_key_\w+_(?:windows|chinacloudapi|usgovcloudapi)_\w+$"
    r"|^token$"
)
# These too often name a column, a counter or a part of a syntax: what they hold must look the part.
_PERHAPS = re.compile(
    rf"(?:^|_)(?:{_KEYS}){_AGAIN}$|token(?!iz)s?$|(?:^|_)(?:signature|sig|pass|pw|jwt|sas){_AGAIN}$"
)
_SWITCH = re.compile(
    r"^(?:is|has|use|uses|with|without|no|show|needs?|requires?|max|min|num|total|count)_"
    r"|secret_(?:key_)?ref_"
    r"|(?:^|_)(?:page|next|continuation|resume|sync|cancel\w*|prompt|completion|eos|bos|pad)_tokens?$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NO, _LIKELY, _CERTAIN = 0, 1, 2
MAX_KEY = 300
_MIN_LENGTH = 4
_SHAPED = 15  # no token that is known by its shape is shorter


def _words(key: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", _CAMEL.sub("_", key).lower()).strip("_")


def _grade(key: str) -> int:
    """How sure it is that a key of an event or of a text holds a secret."""
    return _graded(key[-MAX_KEY:])  # what is remembered is bounded


@lru_cache(maxsize=4096)
def _graded(key: str) -> int:
    words = _words(key)
    if " " in key or _SWITCH.search(words):
        return _NO
    if _HELD.search(words):
        return _CERTAIN
    return _LIKELY if _PERHAPS.search(words) else _NO


# Values that are none, whatever the key: literals, parameters and types.
_NOTHING = re.compile(
    r"(?:|\*{3,}|x{3,}|\.{3}|…|null|none|nil|undefined|true|false|yes|no|on|off|\d{1,3}|\?|%s|\{\}"
    r"|[:@$][A-Za-z_]\w{0,60}|\$\d{1,3}|\$?\{\{?\s{0,3}[\w.\-]{1,80}\s{0,3}\}?\}|<[\w \-]{1,60}>?"
    r"|string|str|text|byte|bytes|binary|boolean|bool|short|int|integer|long|bigint|smallint|float"
    r"|double|number|numeric|date|time|timestamp\w{0,4}|uuid|json|object|any|n?varchar2?|char"
    r"|(?:n?(?:var)?char2?|varbinary|decimal|numeric|number)\(.{0,12}"
    r"|(?:array|map|struct|list|optional|union)<.{0,200})",
    re.IGNORECASE,
)
# What follows `password: ` in a sentence or in the error of a parser.
_PROSE = re.compile(
    r"(?:must|should|is|are|was|were|has|have|cannot|not|required|missing|invalid|wrong|expected"
    r"|empty|unknown|expired|the|a|an|for|of|to|in|and|or|from|with|this|that|your|check|please"
    r"|failed|failure|error|authentication|denied|rejected|redacted|masked|hidden|unexpected|default)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"[A-Za-z_][\w$]{0,80}(?:\.[A-Za-z_`\"][\w$`\"]{0,80}){0,4}")
_CALL = re.compile(r"[A-Za-z_][\w.]{0,80}\(")


def _is_value(value: str, grade: int, *, spaced: bool = False, quoted: bool = False) -> bool:
    """Whether this is a secret under a key of that grade; `spaced`: as in `key = value`."""
    value = value.strip()
    if _NOTHING.fullmatch(value):
        return False
    if spaced and not quoted:
        if _PROSE.fullmatch(value):
            return False
        if _REFERENCE.fullmatch(value) and _grade(value.rpartition(".")[2]):
            return False  # a column: t.token = u.token
    if grade == _CERTAIN:
        return True
    if " " in value or value.isdecimal():
        return False
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return len(value) >= 24 or (not spaced and (value.endswith("=") or (len(value) >= 6 and mixed)))


# One search keeps every other thread waiting for as long as it takes, so a long text is searched by
# steps, and two of them share more than a credential is long. A repeated group takes 200 bytes for each
# repetition, so a value is read no further than this; one that has not ended then is taken to go on to
# the end of the text, as one does whose closing quote was cut off.
_SEARCHED, _SHARED, _LONGEST = 64 * 1024, 16 * 1024, 64 * 1024
_AHEAD = 1024  # more than any pattern looks ahead


def _search(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """What the pattern finds first from there on."""
    while len(text) - at > _SEARCHED + _SHARED:
        found = pattern.search(text, at, at + _SEARCHED + _SHARED)
        if found is None or found.start() >= at + _SEARCHED:
            at += _SEARCHED
        elif found.end() + _AHEAD < found.endpos:
            return found
        elif whole := pattern.match(text, found.start(), found.start() + _LONGEST):
            return whole  # what ended with the step may go on beyond it
        else:
            at = found.start() + 1
    return pattern.search(text, at)


def _sub(pattern: re.Pattern[str], by: str | Callable[[re.Match[str]], str], text: str) -> str:
    """The text with all that the pattern finds replaced."""
    if len(text) <= _SEARCHED + _SHARED:
        return pattern.sub(by, text)
    parts: list[str] = []
    done = 0
    while (found := _search(pattern, text, done)) is not None:
        made = found.expand(by) if isinstance(by, str) else by(found)
        parts += text[done : found.start()], made
        done = found.end() if made == found[0] else _end(found)
    return "".join((*parts, text[done:]))


def _end(found: re.Match[str]) -> int:
    # An escape, a comma or a quote that the cut divides is left out of what was found.
    cut_off = found.endpos < len(found.string) and found.end() + 1 >= found.endpos
    return len(found.string) if cut_off else found.end()


# Text: `key=value` and its kin

# `=`, and the `":` of JSON, as an address or a nested document writes them
_ENCODED = (
    r"%(?:25){0,3}3d|\\{1,15}u003d"
    r"|(?:%(?:25){0,3}22(?:%(?:25){0,3}3a|:)|\\{1,15}u0022(?::|\\{1,15}u003a))(?:%(?:25){0,3}20)?"
)
_KEY = re.compile(
    r"(?<![\w.\-$])(?P<key>[\w.\-$]{2,120})(?P<sep>(?:\\{0,15}[\"'`])?\]?\s{0,8}"
    rf"(?:=>|->|:=|={{1,3}}|[:>]|{_ENCODED})\s{{0,8}})"
    r"(?P<kind>(?:(?:basic|bearer|digest|negotiate|token|apikey)\s{1,8}(?=\S))?)",
    re.IGNORECASE,
)
_UNQUOTED = re.compile(
    r"(?:[^\s\"'&;<,]+|<(?!/)|,(?!\s|$|[\w.\-]{1,60}\s{0,2}[=:])|[\"'](?![\s,}\]:)]|$))+"
)
# Each ends at its closing quote or, where that was cut off, at the end of the text.
_QUOTED = {
    '"': re.compile(r"\"([^\"\\]*(?:\\.[^\"\\]*)*)\"?", re.DOTALL),
    "'": re.compile(r"'([^'\\]*(?:(?:\\.|'')[^'\\]*)*)'?", re.DOTALL),
    "`": re.compile(r"`([^`]*)`?"),
    # JSON inside JSON
    "\\": re.compile(r"\\\"([^\"\\]*(?:\\(?:\\\\\"|[^\"])[^\"\\]*)*)(?:\\?\")?", re.DOTALL),
}
# JSON inside JSON inside JSON: its quotes have as many backslashes before them as the first.
_DEEP = re.compile(r"\\{2,15}[\"']")
_CLOSING = re.compile(r"(?<!\\)\\*[\"']")
_TRIPLE = ('"""', "'''")
# YAML: what stands below a key that is not its value but other keys, a list or a comment; except `value: …`
_BELOW = re.compile(r"[#-]\s|[\"']?[\w.\-$/ ]{1,80}[\"']?:(?=\s|$)")
_VALUE_BELOW = re.compile(r"[\"']?value[\"']?:[ \t]{1,8}(?=\S)")
# YAML: the lines below, as far as they are indented.
_BLOCK = re.compile(r"[|>][+\-\d]{0,2}[ \t]{0,8}\r?\n(?:[ \t]+[^\n]*(?:\n|$))+")
# `"name": "DB_PASSWORD", "value": "…"` in JSON or YAML
_NAMED = re.compile(
    r"(?<![\w.\-$])(?:name|key|variable)\\{0,15}[\"']?\s{0,4}[:=]\s{0,4}\\{0,15}[\"']?"
    r"(?P<key>[\w.\-$]{2,120})\\{0,15}[\"']?(?P<sep>\s{0,40},?\s{0,40}\\{0,15}[\"']?value\\{0,15}[\"']?"
    r"\s{0,4}[:=]\s{0,8})(?P<kind>)",
    re.IGNORECASE,
)
# `.option("password", "…")`, `[('password', '…')]`
_CALLED = re.compile(
    r"\(\s{0,4}[bru]?\\{0,15}[\"'](?P<key>[\w.\-$]{2,120})(?P<sep>\\{0,15}[\"']\s{0,4},\s{0,8})(?P<kind>)"
    r"(?=[bru]?\\{0,15}[\"'])"
)
_CALLS = (
    "option",
    "set",
    "config",
    "conf",
    "put",
    "property",
    "header",
    "parameter",
    "[",
    "(",
    ",",
)
# `["--password", "…"]`
_ARGUMENT = re.compile(
    r"(?<=[\"'])--?(?P<key>[A-Za-z][\w.\-]{1,80})(?P<sep>\\{0,15}[\"']\s{0,4},\s{0,8})(?P<kind>)"
    r"(?=\\{0,15}[\"'])"
)
# A property as Spark prints it
_PRINTED = re.compile(
    r"\((?P<key>(?:spark|fs|hadoop|hive)\.[\w.\-]{3,120})(?P<sep>,)(?P<kind>)(?=[^\s,()\"'])"
)
_BRACED = re.compile(r"\{([^{}\n]*)\}")
_LISTED = re.compile(r"\[(?:(?:basic|bearer)\s{1,8})?([^\s\[\]\"',]{4,4000})\]", re.IGNORECASE)
_LITERAL_CALL = re.compile(r"[A-Za-z_]\w{0,40}\(\s{0,4}(?=')|[bBrRuU]{1,2}(?=[\"'])")
_LINE = re.compile(r"[^\n]+")


def _pairs(text: str, pattern: re.Pattern[str] = _KEY) -> str:
    """Mask the value of each `key=value` with a key that holds a secret."""
    parts: list[str] = []
    done = at = 0
    while (found := _search(pattern, text, at)) is not None:
        at = found.end()
        grade = _grade(found["key"])
        if not grade or not _separates(text, found, pattern):
            continue
        separator = found["sep"]
        spaced = separator[:1].isspace() or separator[-1:].isspace()
        if pattern is not _KEY or (separator[:1] in _QUOTED and ":" in separator):
            spaced = False  # a member of JSON in a text, and no sentence
        if found["key"].lower() == "token":
            grade = _LIKELY  # parsers call their symbols tokens
        if not spaced and text[found.start() - 1 : found.start()] in _QUERIES:
            grade = _CERTAIN
        start, end = _value(text, found, grade, spaced=spaced)
        if end > start:
            parts += text[done:start], MASK
            done = at = end
    return "".join((*parts, text[done:])) if parts else text


_QUERIES = ("?", "&")
# In a URL: what may stand before a host, a port, and all hosts before one
_BEFORE_HOST, _MOST_HOSTS = ("/", ","), 512
_A_PORT = re.compile(r"\d{2,5}(?![\w.@:\-])")
_HOSTS = re.compile(r"[\w.\-:,]*")


def _separates(text: str, found: re.Match[str], pattern: re.Pattern[str]) -> bool:
    """Whether what stands around a key makes it one."""
    if pattern is _CALLED:  # and no list of columns
        return text[max(0, found.start() - 12) : found.start()].rstrip().lower().endswith(_CALLS)
    if pattern is not _KEY:
        return True
    separator, before = found["sep"], text[found.start() - 1 : found.start()]
    if ">" in separator and "=" not in separator and "-" not in separator:
        return before == "<"  # an element of XML, not a comparison
    # An ARN, `aws:secretsmanager:…:secret:name`, names a secret.
    if before == ":" and ":" in separator:
        return False
    # A host that is called like a secret: `kafka://auth-token:9092`
    if separator != ":" or before not in _BEFORE_HOST or not _A_PORT.match(text, found.end()):
        return True
    scheme = text.rfind("://", max(0, found.start() - _MOST_HOSTS), found.start())
    return scheme < 0 or not _HOSTS.fullmatch(text, scheme + 3, found.start())


def _value(text: str, found: re.Match[str], grade: int, *, spaced: bool) -> tuple[int, int]:
    """From where to where the value of a key is to be masked; nothing where both are equal."""
    at = start = _start(text, found)
    if literal := _LITERAL_CALL.match(text, at):
        at = literal.end()
        if text[at - 1] not in "bBrRuU":
            start = at
    if (end := _long_quoted(text, at)) is not None:
        return at, end if end > at and _is_value(
            text[at:end].strip("\\\"'"), grade, quoted=True
        ) else at
    opening = text[at : at + 1]
    quoted = _QUOTED.get(opening)
    if quoted is not None and (match := quoted.match(text, at, at + _LONGEST)):
        secret = _is_value(match[1], grade, spaced=spaced, quoted=True)
        return start, _end(match) if secret else start
    if opening == "{" and not found["sep"][-1:].isspace() and (match := _BRACED.match(text, at)):
        return at, match.end() if _is_value(match[1], grade) else at
    if (opening == "|" or opening == ">") and (match := _BLOCK.match(text, at, at + _LONGEST)):  # noqa: PLR1714
        return at, _end(match) - match[0].endswith("\n")
    if text.startswith(MASK, at):
        return at, at
    if "jaas" in found["key"].lower() and (match := _LINE.match(text, at)):
        return at, match.end()
    if opening == "[" and not spaced and (match := _LISTED.match(text, at)):
        return at, match.end() if _is_value(match[1], grade) else at
    if opening in ("", "(", "[") or text.startswith("{", at) or _CALL.match(text, at):
        return at, at
    match = _UNQUOTED.match(text, at, at + _LONGEST)
    if match is None:
        return at, at
    value = _without_closing(match[0])
    if found["kind"] or _is_value(value, grade, spaced=spaced):
        return at, at + len(value) if _end(match) == match.end() else len(text)
    return at, at


def _start(text: str, found: re.Match[str]) -> int:
    """Where the value of a key begins; at the end of the text if what stands below it is none."""
    at = found.end()
    if "\n" not in found["sep"] or not _BELOW.match(text, at):
        return at
    below = _VALUE_BELOW.match(text, at)
    return len(text) if below is None else below.end()


def _long_quoted(text: str, at: int) -> int | None:
    """Where a value ends whose quotes are three, or have several backslashes; None if they do not."""
    if text.startswith(_TRIPLE, at):
        end = text.find(text[at : at + 3], at + 3)
        return len(text) if end < 0 else end + 3
    opening = _DEEP.match(text, at)
    if opening is None:
        return None
    longest, at = opening.end() - at - 1, opening.end()
    while found := _search(_CLOSING, text, at):
        at = found.end()
        if found.end() - found.start() - 1 <= longest:
            return found.end()
    return len(text)


def _without_closing(value: str) -> str:
    """A value without the brackets and commas that close what it stands in."""
    kept = value.rstrip(")]},")
    for opening, closing in ("()", "[]", "{}"):
        if opening in kept and value[len(kept) : len(kept) + 1] == closing:
            return value[: len(kept) + 1]  # its own, as in ${NAME}
    return kept


# Text: everything else

_PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]{1,60}-----.*?(?:-----END [A-Z0-9 ]{1,60}-----|\Z)", re.DOTALL
)
_FLAG = re.compile(
    r"(?<!\S)(--?(?P<key>[A-Za-z][\w.\-]{1,80})\s{1,8})(?![-=])"
    r"(\"(?:[^\"\\\n]+|\\.)*\"?|'[^'\n]*'?|[^\s\"']+)"
)
_LOGIN_FLAG = re.compile(r"(?<!\S)((?:-u|--user)[ =])[^\s:/]{1,200}:(?!\s)[^\s]+")
# `key value`, as in spark-defaults.conf
_PROPERTY = re.compile(
    r"(?<!\S)((?P<key>(?:spark|fs)\.[\w.\-]{3,200})[ \t]{1,40})(?![=:])([^\s\"']+)"
)
_NETRC = re.compile(r"(\blogin\s{1,8}\S{1,200}\s{1,8}password\s{1,8})\S+", re.IGNORECASE)
_MYSQL_FLAG = re.compile(r"(\bmysql\w{0,5} (?:[^\n;|]{0,400}? )?-p)[^\s;|]+")
_SQLPLUS = re.compile(
    r"(\bsqlplus\s(?:-\w+\s){0,4}[\"']?[^\s@/]{1,128}/)[^\s@/]\S{0,256}@", re.IGNORECASE
)
_COOKIE = re.compile(
    r"(\b(?:set-)?cookie[\"']?: ?[\"']?)[^\s=;\"']{1,200}=[^\n\"']+", re.IGNORECASE
)
_SCHEME = re.compile(
    r"\b(bearer|basic)\s{1,8}(?=[a-z+/._~\-]{0,400}[0-9=])[a-z0-9+/=._~\-]{12,}", re.IGNORECASE
)
_SQL = re.compile(
    r"(\bIDENTIFIED\s{1,8}(?:WITH\s{1,8}\S{1,60}\s{1,8})?(?:BY|AS)\s{1,8}(?:(?:PASSWORD|VALUES)\s{1,8})?)"
    r"('(?:[^'\\]+|\\.|'')*'?|\"[^\"]*\"?|[^\s;'\"]+)"
    r"|((?<![\w'\"`.])(?:PASSWORD|PASSPHRASE|(?-i:SECRET)|SECRET_ACCESS_KEY|ACCESS_TOKEN|CREDENTIALS)"
    r"(?:\s{1,8}|\s{0,8}\(\s{0,8})[EN]?)('(?:[^'\\]+|\\.|'')*'?)",
    re.IGNORECASE | re.DOTALL,
)
_ELEMENT = re.compile(
    r"(<name>\s{0,8}([\w.\-]{2,200})\s{0,8}</name>\s{0,40}<value>)([^<]*)", re.IGNORECASE
)
# A URL within the query of another, or of one that stands in the query of a third
_ENCODED_USER = re.compile(
    r"(%(?:25){0,3}3A(?:%(?:25){0,3}2F){2})"
    r"(?:[^\s\"'<>&/@%]|%(?!(?:25){0,3}(?:2F|40|3F|23))){1,2000}(%(?:25){0,3}40)",
    re.IGNORECASE,
)
# A URL in JSON whose slashes are escaped, within a text
_ESCAPED_USER = re.compile(r"(:(?:\\{1,15}/){2})[^\s\"'<>/@:]{0,200}:[^\s\"'<>/@]{1,2000}@")
_TAG = re.compile(
    r"(<(?:[\w\-]{1,40}:)?(?P<key>[\w.\-]{2,120})(?:\s[^<>]{0,400})?>)(?P<value>[^<]+)(?=</|$)"
)
# Where a URL ends, and where what may hold a login does.
_ENDS = re.compile(r"[\s\"'<>]")
_AUTHORITY_ENDS = re.compile(r"[\s/?#\"'<>]")
_PORT = re.compile(r"\d*(?:[/?#,]|$)")
_ODD = 4096
_ORACLE = re.compile(r"(jdbc:oracle:\w{1,10}:)[^\s@/]{1,128}/\S{0,256}@", re.IGNORECASE)
# The path of a webhook opens it. Pages about webhooks have short words and dots in theirs.
_WEBHOOK = re.compile(
    # A dataset's name may be the path alone.
    r"((?:://[^\s/\"'<>]{1,255}|(?<![^\s\"'=(]))/(?:[\w.~\-]{1,60}/){0,4}?"
    r"(?:web_?-?hooks?|webhookb2|hooks|services(?=/T)|with/key)/)"
    r"(?=[A-Za-z_/@\-]{0,200}\d)[\w/@\-]{12,}(?![\w.])",
    re.IGNORECASE,
)
_QUERY = re.compile(r"[?#][\w.%\-\[\]$]*=.*$", re.DOTALL)
# Tokens known by their shape. None starts inside what another attempt has read.
_SHAPES = re.compile(
    r"(?<![\w\-])(?:(?:AKIA|ASIA)[A-Z0-9]{16}(?![\w\-])"
    r"|eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?"
    r"|gh[oprsu]_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|dckr_pat_[\w\-]{20,}|shp(?:at|ss|ca|pa)_[A-Za-z0-9]{30,}"
    r"|sk-(?:proj|ant)-[\w\-]{30,}|ya29\.[\w\-]{20,}|GOCSPX-[\w\-]{20,}|pypi-AgE[\w\-]{30,}|xapp-\d-[\w\-]{20,}"
    r"|npm_[A-Za-z0-9]{30,}|[rs]k_live_\w{16,}|hvs\.[\w\-]{20,}|github_pat_\w{30,}|glpat-[\w\-]{20,}|xox[abprs]-[\w\-]{10,}"
    r"|dapi[0-9a-f]{32}|AIza[\w\-]{35}|hw_[\w\-]{43}|bot\d{6,12}:[\w\-]{30,})"
)


# In SQL, `IDENTIFIED BY` and a word without quotes is about one of these; elsewhere it is prose.
_ACCOUNT = re.compile(r"\b(?:user|role|link|grant|connect)\b", re.IGNORECASE)


def _sql(match: re.Match[str]) -> str:
    literal = match[2] or match[4]
    if not _is_value(literal.strip("'\""), _CERTAIN, quoted=True):
        return match[0]
    if literal[0] not in "'\"" and (
        _PROSE.fullmatch(literal)
        or not _ACCOUNT.search(match.string, max(0, match.start() - 400), match.start())
    ):
        return match[0]
    return f"{match[1] or match[3]}{MASK}"


def _flag(match: re.Match[str]) -> str:
    if _grade(match["key"]) != _CERTAIN or not _is_value(match[3].strip("\"'"), _CERTAIN):
        return match[0]
    return f"{match[1]}{MASK}"


def _tag(match: re.Match[str]) -> str:
    secret = _grade(match["key"]) == _CERTAIN and _is_value(match["value"], _CERTAIN)
    return f"{match[1]}{MASK}" if secret else match[0]


def _element(match: re.Match[str]) -> str:
    grade = _grade(match[2])
    return f"{match[1]}{MASK}" if grade and _is_value(match[3], grade) else match[0]


class MaskingFormatter(logging.Formatter):
    """Formats the lines of a log without credentials, also in the trace of an error.

    Names and messages come from whoever sends events: what would break a line, or a terminal, is
    escaped, and the lines of a trace are indented. So none of them looks like a record of its own.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """The line, masked."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record)
        lines = [redact(self.formatMessage(record))]
        if record.exc_info:
            trace = redact(self.formatException(record.exc_info))
            lines += [f"  {line}" for line in trace.split("\n")]
        return "\n".join(map(_printable, lines))


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() else one.encode("unicode_escape").decode() for one in text
    )


def strip_query(path: str) -> str:
    """Cut `?a=b` and `#a=b`; a `?` or `#` that is part of a file name or a pattern stays."""
    return _QUERY.sub("", path) if "?" in path or "#" in path else path


def strip_users(text: str) -> str:
    """Drop `user:password@` from every URL in the text, containers of Azure paths excepted."""
    return _user_parts(text, "") if "@" in text else text


def _logins(text: str) -> str:
    text = _user_parts(text, f"{MASK}@")
    return _sub(_ESCAPED_USER, rf"\1{MASK}@", text) if "\\/" in text else text


def _user_parts(text: str, mark: str) -> str:
    """Replace the login of every URL, however long. Each character is read at most three times."""
    parts: list[str] = []
    done, at, end = 0, -1, -1
    url = text.find("://")
    while url >= 0:
        start = url + 3
        if at < start:
            at = text.find("@", start)
            if at < 0:
                break
        if end < start:
            end = _first(_ENDS, text, start)
        if at < end:
            login = _login_end(text, start, at)
            if login > start:
                parts += text[done:start], mark
                done = start = login
        url = text.find("://", start)
    return "".join((*parts, text[done:])) if parts else text


def _login_end(text: str, start: int, at: int) -> int:
    """Where the host of a URL begins; -1 if it has no login. `at` is the first @ in it."""
    end = _first(_AUTHORITY_ENDS, text, start)
    if at < end:
        at = text.rfind("@", at, end)
        if text.find(":", start, at) < 0:
            scheme = text[max(0, start - 9) : start - 3].lower()
            if scheme.endswith(CONTAINER_SCHEMES) or text[start:at] == "git":
                return -1
        return at + 1
    # A password with an unencoded / or ?: what follows the colon is then no port.
    colon = text.find(":", start, end)
    if (
        colon < 0
        or text[start] == "["
        or not 1 < at - colon <= _ODD
        or _PORT.match(text, colon + 1)
    ):
        return -1
    return at + 1


def _first(ends: re.Pattern[str], text: str, at: int) -> int:
    """Where the first of some characters is, or the end of the text."""
    while at < len(text):
        if found := ends.search(text, at, at + _SEARCHED):
            return found.start()
        at += _SEARCHED
    return len(text)


def _elements(text: str) -> str:
    if "</" in text:
        text = _sub(_TAG, _tag, text)
    return _sub(_ELEMENT, _element, text) if "<name>" in text.lower() else text


def _keyed(text: str) -> str:
    text = _pairs(text)
    if "alue" in text:
        text = _pairs(text, _NAMED)
    if "(" in text and "," in text:
        text = _pairs(_pairs(text, _CALLED), _PRINTED)
    if "'-" in text or '"-' in text:
        text = _pairs(text, _ARGUMENT)
    return _elements(_sub(_PROPERTY, _flag, _sub(_FLAG, _flag, text)))


# Each way to mask, with what a text must have in lower case to need it.
_STEPS: tuple[tuple[tuple[str, ...], Callable[[str], str]], ...] = (
    (("@",), _logins),
    (("2f%2",), lambda text: _sub(_ENCODED_USER, rf"\1{MASK}\2", text)),
    (("hook", "/services/t", "with/key"), lambda text: _sub(_WEBHOOK, rf"\1{MASK}", text)),
    (("-----begin",), lambda text: _sub(_PEM, MASK, text)),
    (("oracle:",), lambda text: _sub(_ORACLE, rf"\1{MASK}@", text)),
    (("sqlplus ",), lambda text: _sub(_SQLPLUS, rf"\1{MASK}@", text)),
    (("mysql ", "mysqldump ", "mysqladmin "), lambda text: _sub(_MYSQL_FLAG, rf"\1{MASK}", text)),
    (("password",), lambda text: _sub(_NETRC, rf"\1{MASK}", text)),
    (("cookie",), lambda text: _sub(_COOKIE, rf"\1{MASK}", text)),
    (("identified", "pass", "secret", "token", "credential"), lambda text: _sub(_SQL, _sql, text)),
    (("pass", "pw", "secret", "credential", "jaas", "token", "key", "sig", "auth", "jwt", "sas"),
     _keyed),
    (("-u ", "--user"), lambda text: _sub(_LOGIN_FLAG, rf"\1{MASK}", text)),
    (("bearer ", "basic "), lambda text: _sub(_SCHEME, rf"\1 {MASK}", text)),
    (("akia", "asia", "eyj", "ghp_", "gho_", "ghs_", "ghu_", "ghr_", "_pat_", "hf_", "shp", "glpat-", "xox", "xapp-",
      "dapi", "aiza", "ya29.", "gocspx-", "pypi-", "sk-proj-", "sk-ant-", "hw_", "/bot", "npm_", "k_live_", "hvs."),
     lambda text: _sub(_SHAPES, MASK, text)),
)  # fmt: skip


def redact(text: str) -> str:
    """Replace every credential in the text by `***`; text without any comes back as it was."""
    if len(text) < _MIN_LENGTH:
        return text
    low = text.lower()
    for hints, mask in _STEPS if len(text) >= _SHAPED else _STEPS[:-1]:
        for hint in hints:
            if hint in low:
                text = mask(text)
                break
    return text


# JSON documents: what a server is sent

# What the hints of _STEPS have in them, each from a letter that is rare in JSON and joined by their
# first letters, which takes half the time. Not the @: a login is found by _login.
_HINT = re.compile(
    rb"k(?:e[yn]|ia|ie|_live_|r_pat|-proj|-ant-)|p(?:ass|w|m_|lus |ypi-|at_|x-)|c(?:re[td]|le:)"
    rb"|j(?:aas|wt)|s(?:ig|as|ia|hp)|uth|h(?:ook|[posur]_|w_|f_|vs\.)|/(?:services/t|bot)|-(?:----b|u |-us)|fied|b(?:earer |asic |_pat_)"
    rb"|y(?:j|sql\w{0,5} |a29)|x(?:ox|app-)|2f%2|dapi|za|glpat-"
)
# Facets have most of their members in common with others that were searched before: a part between
# two commas is searched once. No hint has a comma in it.
_REPETITIVE, _STEP = 128, 64 * 1024
_PIECES, _PIECE = 10_000, 256
_unhinted: set[bytes] = set()
# A byte is found in bytes at once; of bytes, `in` first makes an error of their being no number.
_AT, _BACKSLASH = b"@\\"
_URL_END = re.compile(rb"[\s\"'<>]")
_NAMES = ("name", "key", "variable", "property")
_HOLDERS = (("value", _NAMES), ("Value", tuple(map(str.capitalize, _NAMES))))
_COOKIES = ("cookie", "set-cookie")
# The first of a pair that stands in a list: `["spark.hadoop.fs.s3a.secret.key", "…"]`
_PAIRED = re.compile(r"(?:spark|fs|hadoop|hive)\.|(?:proxy-)?authorization$", re.IGNORECASE)
# In a key like this only what is known by its shape can be a credential.
_PLAIN = re.compile(r"[\w.\-$]*")


def holds_secret(data: bytes, key: str = "") -> bool:
    """Whether a piece of JSON, the member `key` of an object, holds a credential.

    It is called for everything a server has not seen before: most of that has no word in it that
    could stand beside a credential, and is not decoded.
    """
    if not _hinted(data) and (not key or _known(key[:MAX_KEY]) == (key, _NO)):
        return False
    try:
        value = json.loads(data)
    except ValueError:
        value = data.decode(errors="replace")
    whole = {key: value} if key else value
    return bool(clean_value(whole) != whole)


def _login(data: bytes) -> bool:
    """Whether some @ may end the login of a URL. Each byte is read once, however many URLs there are."""
    start = 0
    while (at := data.find(b"@", start)) >= 0:
        url = data.rfind(b"://", start, at)
        if url >= 0 and not _URL_END.search(data, url, at):
            return True
        start = at + 1
    return False


def _hinted(data: bytes) -> bool:
    if _AT in data and _login(data):
        return True
    if _BACKSLASH in data and (b"\\/" in data or b"\\u" in data):
        return True
    if len(data) < _REPETITIVE:
        return _HINT.search(data.lower()) is not None
    if len(data) > _STEP:
        # By steps, between which other threads get their turn; two share more than a hint is long.
        steps = range(0, len(data), _STEP)
        return any(_HINT.search(data[start : start + _STEP + 16].lower()) for start in steps)
    pieces = set(data.split(b",")) - _unhinted
    if _HINT.search(b",".join(pieces).lower()):
        return True
    if len(_unhinted) > _PIECES:
        _unhinted.clear()
    _unhinted.update(piece for piece in pieces if len(piece) <= _PIECE)
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
        return _short(value) if len(value) <= _SHORT else redact(value)
    if isinstance(value, list):
        return _items(value)
    if isinstance(value, dict):
        return _members(value)
    return value


_SHORT = 64
_short = lru_cache(maxsize=4096)(redact)  # types, names and addresses come again and again


def _members(value: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    used: dict[str, int] = {}
    for key, item in value.items():
        shown, grade = _known(key) if len(key) <= MAX_KEY else (redact(key), _grade(key))
        if shown != key:
            shown = _distinct(shown, value, found, used)
        cookie = isinstance(item, str) and "=" in item and key.lower() in _COOKIES
        found[shown] = MASK if cookie else _member(grade, item)
    for held, names in _HOLDERS:
        if held in value:
            named = [value[key] for key in names if isinstance(value.get(key), str)]
            if grade := next(filter(None, map(_grade, named)), _NO):
                found[held] = _member(grade, value[held])
    return found


@lru_cache(maxsize=4096)
def _known(key: str) -> tuple[str, int]:
    """A key without the credentials in it, and how sure it is that it holds one."""
    shown = _SHAPES.sub(MASK, key) if _PLAIN.fullmatch(key) else redact(key)
    return shown, _grade(key)


def _distinct(
    key: str, sent: Mapping[str, Any], found: Mapping[str, Any], used: dict[str, int]
) -> str:
    """A masked key; two that look the same now are told apart, so that nothing is lost."""
    shown, count = key, used.get(key, 1)
    while shown in sent or shown in found:
        count += 1
        shown = f"{key} ({count})"
    used[key] = count
    return shown


def _items(values: list[Any]) -> list[Any]:
    """The items of a list; in one of arguments, `--password` is about the next."""
    found = [clean_value(item) for item in values]
    for i, item in enumerate(values[:-1]):
        if isinstance(item, str) and item[:1] == "-" and _grade(item.lstrip("-")) == _CERTAIN:
            found[i + 1] = _member(_CERTAIN, values[i + 1])
    if len(values) == 2 and isinstance(values[0], str) and _PAIRED.match(values[0]):
        found[1] = _member(_grade(values[0]), values[1])
    return found


def _member(grade: int, value: Any) -> Any:
    """What stands under a key of that grade."""
    if grade:
        if isinstance(value, str) and _is_value(value, grade, quoted=True):
            return MASK
        if type(value) in (int, float) and grade == _CERTAIN and abs(value) > 999:
            return MASK
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return [_member(grade, item) for item in value]
        if isinstance(value, dict) and isinstance(value.get("value"), str):
            return {**_members(value), "value": _member(grade, value["value"])}
    return clean_value(value)


# Configurations of connectors

# A key of a configuration is taken for a secret rather too often than too seldom: its value is only
# hidden, and never part of a dataset's name.
_SECRET_KEY = re.compile(
    rf"{_PASSWORDS}|{_KEYS}|passw|secret|token|credential|jaas|user_?info|connection_?string"
    r"|webhook|authorization|query_masked$|keyfile$"
    r"|(?<![a-z])(?:pass|sig|jwt|auth|sas)$"
)
# They look alike, and are names of things or switches.
_PLAIN_KEY = re.compile(
    r"\.enabled?$|credentials\.source$|\.(?:class|type|mechanism|alias|format|name)$"
    r"|tokenizer|token\.endpoint|primary\.key\.|(?:transforms|predicates)\..*\.key$",
    re.IGNORECASE,
)
# An address with a login in it is not itself a secret, only the parts below are.
_ADDRESS_KEY = re.compile(r"connection[._-]?string", re.IGNORECASE)
_ADDRESS_PARTS = re.compile(
    r"://[^\s/@:]{0,200}:([^\s/@]{1,400})@"
    r"|(?:password|passwd|pwd|secret\w{0,20}|key|token|sig|signature)=\"?([^&;\s\",]{1,4000})",
    re.IGNORECASE,
)
_ADDRESS_QUERY = re.compile(r"(\w://[^\s?\"']{0,2000})\?[^\s\"']+")
_PLACEHOLDER = re.compile(r"\$\{[A-Za-z][\w.\-]*:[^{}]*\}")
_HARMLESS = re.compile(r"[\w.\-/]{0,200}")
# Keys whose values name things that events must show.
_NAMING_KEY = re.compile(
    r"(?:^|[._-])(?:name|names|host|hosts|hostname|dbname|database|databases|databasename|schema"
    r"|keyspace|bucket|collection|index|user|username|prefix|topics?|url|uri|class"
    r"|table|tables|whitelist|include\.list)$",
    re.IGNORECASE,
)
_NAMELIKE = re.compile(r"[A-Za-z][A-Za-z_.\-]{0,30}\d{0,4}")
_PARAMETERS = re.compile(r"[?;].*$", re.DOTALL)


def is_secret(key: str, declared: Collection[str] = ()) -> bool:
    """Whether a configuration key holds a secret: declared PASSWORD by the plug-in, or by its name."""
    if key in declared:
        return True
    secret = key.lower().endswith(".key") or _SECRET_KEY.search(_words(key))
    return bool(secret) and not _PLAIN_KEY.search(key)


def secret_values(config: Mapping[str, str], declared: Collection[str] = ()) -> tuple[str, ...]:
    """The values in a configuration that must not be seen anywhere, longest first."""
    from headwater.lineage.naming import SCHEMES, STORES

    found = {
        value.strip()
        for key, value in config.items()
        if is_secret(key, declared)
        and not (_ADDRESS_KEY.search(key) and "://" in value)
        and len(value.strip()) >= _MIN_LENGTH
    }
    for value in config.values():
        found.update(_PLACEHOLDER.findall(value))
        parts = (part for match in _ADDRESS_PARTS.findall(value) for part in match)
        found.update(part for part in parts if len(part) >= _MIN_LENGTH)
    plain = {"true", "false", "none", "null", *SCHEMES, *STORES}
    kept = (v for v in found if v.lower() not in plain and not _names_something(v, config))
    return tuple(sorted(kept, key=len, reverse=True))


def _names_something(value: str, config: Mapping[str, str]) -> bool:
    """Whether a password is also the name of something, as in a database `shop` with that password.

    Hiding the name would hide the dataset, and the name alone does not say that it opens anything.
    """
    texts = (
        _PARAMETERS.sub("", redact(text))
        for key, text in config.items()
        # The path of a web address may itself be a secret.
        if value in text and _NAMING_KEY.search(key) and not is_secret(key)
        and not text.lower().startswith("http")
    )  # fmt: skip
    return is_name(value, texts)


def is_name(value: str, names: Iterable[str]) -> bool:
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
    return redact(_ADDRESS_QUERY.sub(rf"\1?{MASK}", _PLACEHOLDER.sub(MASK, text)))


def scrub_all(value: Any, hidden: Collection[str] = (), seen: dict[str, str] | None = None) -> Any:
    """Plain values with every text in them scrubbed, so that equal texts stay equal."""
    seen = {} if seen is None else seen
    if isinstance(value, str):
        if value not in seen:
            plain = _HARMLESS.fullmatch(value) and not any(item in value for item in hidden)
            seen[value] = value if plain else scrub(value, hidden)
        return seen[value]
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        used: dict[str, int] = {}
        for key, item in value.items():
            shown = scrub_all(key, hidden, seen)
            if shown != key:
                shown = _distinct(shown, value, found, used)
            found[shown] = scrub_all(item, hidden, seen)
        return found
    if isinstance(value, list | tuple):
        return [scrub_all(item, hidden, seen) for item in value]
    return value


def safe_config(config: Mapping[str, str], declared: Collection[str] = ()) -> dict[str, str]:
    """A configuration that may be shown: every secret replaced, the rest without credentials."""
    hidden = secret_values(config, declared)
    return {
        key: MASK if is_secret(key, declared) else scrub(value, hidden)
        for key, value in config.items()
    }
