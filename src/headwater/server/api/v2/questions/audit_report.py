"""An audit as one page of HTML that can be printed: no script, nothing fetched, every text escaped."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["HTML", "report_of"]

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
HTML = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", f"{POLICY}; frame-ancestors 'none'".encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
# In the page the colours are those of its theme; on their own, and on paper, dark on white.
STYLE = """
body, :host { display: block; font: 14px/1.45 system-ui, sans-serif; color: var(--text, #1a1a1a);
  background: var(--surface, #fff); margin: 0 auto; max-width: 62rem; padding: 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem;
  border-bottom: 1px solid var(--line-strong, #999); } h3 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
table { border-collapse: collapse; width: 100%; margin: .25rem 0 .75rem; font-size: .9em; }
th, td { text-align: left; vertical-align: top; padding: .2rem .5rem .2rem 0;
  border-bottom: 1px solid var(--line, #ddd); } th { font-weight: 600; overflow-wrap: normal; }
code, pre, .mono { font-family: ui-monospace, monospace; font-size: .92em; }
pre { white-space: pre-wrap; background: var(--sunken, #f5f5f5); padding: .5rem; margin: .25rem 0 .75rem; }
.word { white-space: nowrap; } .muted { color: var(--muted, #555); }
.warn { border: 1px solid var(--aborted, #a60); padding: .4rem .6rem; }
ul { margin: .25rem 0 .75rem; padding-left: 1.2rem; } section { margin-bottom: 1rem; }
@media print, (min-width: 760px) { .id { white-space: nowrap; } }
@page { margin: 16mm 14mm; }
@media print { body, :host { --text: #1a1a1a; --surface: #fff; --line-strong: #999; --line: #ddd; --muted: #555;
  --aborted: #a60; max-width: none; padding: 0; font-size: 9.5pt; } h2, h3 { break-after: avoid; }
  tr, li { break-inside: avoid; } thead { display: table-header-group; } pre { background: none;
  border: 1px solid #ccc; } }
"""
LONGEST_KEY = 40
TURNING = {
    mark: f"\\u{mark:04x}"
    for mark in (0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}


def report_of(found: dict[str, Any], made: str) -> str:
    """The report of an audit; `made` is when it was made."""
    name = _name(found["node"], found["column"])
    parts = [
        f"<h1>Provenance of {name}</h1>",
        f"<p>Period: {_period(found)}. Made {_text(made)} by Headwater.</p>",
        *_warnings(found),
        "<h2>Where the data came from</h2>",
        _list(_name(node) for node in found["sources"]) or "<p>No source is known.</p>",
        *_paths(found["paths"]),
        "<h2>What made it</h2>",
        *[_job(one) for one in found["writers"]],
        "" if found["writers"] else "<p>No job is known to have written it in the period.</p>",
        "<h2>Datasets and their schemas</h2>",
        *[_dataset(one) for one in found["upstream"]],
        "<h2>Who had it downstream</h2>",
        _readers(found),
    ]
    title = found["name"] + (f".{found['column']}" if found["column"] else "")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Provenance of {escape(title.translate(TURNING))}</title><style>{STYLE}</style></head>\n<body>\n"
        + "\n".join(part for part in parts if part)
        + "\n</body></html>\n"
    )


def _text(value: Any) -> str:
    """Anything as text that is only text, and turns the direction of none: marks that would are shown."""
    return "" if value is None else f"<bdi>{escape(str(value).translate(TURNING))}</bdi>"


def _code(value: Any) -> str:
    return f"<code>{_text(value)}</code>"


def _word(value: Any) -> str:
    """A state or a key, which is not broken over lines."""
    return f'<span class="word">{_text(value)}</span>'


def _time(value: str | None) -> str:
    """A time, which is broken before the hour if at all."""
    day, sign, hour = (value or "").partition("T")
    return f"{_word(day + sign)}<wbr>{_word(hour)}"


def _key(value: str) -> str:
    """The name of a value; only a very long one is broken over lines."""
    return f"<code>{_word(value) if len(value) <= LONGEST_KEY else _text(value)}</code>"


def _name(node: str, column: str | None = None) -> str:
    """A job or a dataset by its id, without the word for its kind."""
    return _code(node.partition(":")[2] + (f".{column}" if column else ""))


def _list(items: Iterable[str]) -> str:
    lines = "".join(f"<li>{item}</li>" for item in items)
    return f"<ul>{lines}</ul>" if lines else ""


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    if not lines:
        return ""
    head = "".join(f"<th scope=col>{one}</th>" for one in heads)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


def _period(found: dict[str, Any]) -> str:
    since = _text(found["since"]) if found["since"] else "the first record kept"
    return f"{since} to {_text(found['until'])}"


def _warnings(found: dict[str, Any]) -> list[str]:
    warnings = []
    if found["truncated"]:
        warnings.append("This report is cut: there is more than it shows. Choose a shorter period.")
    if found["hidden"]:
        warnings.append(
            f"{found['hidden']} jobs or datasets next to those shown are hidden from who asked."
        )
    return [f'<p class="warn">{one}</p>' for one in warnings]


def _paths(edges: list[dict[str, Any]]) -> list[str]:
    if not edges:
        return []
    rows = (
        (
            _name(edge["from"], edge["source"]["field"]),
            _name(edge["to"], edge["target"]["field"]),
            "; ".join(_text(_how(step)) for step in edge["how"]),
            ", ".join(_name(job) for job in edge["jobs"]),
        )
        for edge in edges
    )
    return ["<h3>Columns</h3>", _table(("from", "to", "how", "by"), rows)]


def _how(step: dict[str, Any]) -> str:
    word = str(step.get("subtype") or step.get("type") or "unknown").lower()
    return word + (", masked" if step.get("masking") else "")


def _owners(one: dict[str, Any]) -> str:
    owners = ", ".join(_text(owner["name"]) for owner in one["owners"])
    return f"<p>Owned by {owners}</p>" if owners else ""


def _job(one: dict[str, Any]) -> str:
    words = dict.fromkeys((one["integration"], one["processing"], one["type"]))
    kind = " ".join(word for word in words if word)
    uses = [
        f"reads {', '.join(map(_name, one['inputs']))}" if one["inputs"] else "reads nothing known",
        f"writes {', '.join(map(_name, one['outputs']))}",
    ]
    return "".join(
        (
            f'<section><h3>{_name(one["id"])} <span class="muted">{_text(kind)}</span></h3>',
            f"<p>{'; '.join(uses)}</p>",
            _owners(one),
            _runs(one["runs"]) or '<p class="muted">No run in the period.</p>',
            *[_facet(f"Configuration of {_count(c['runs'])}", c) for c in one["configuration"]],
            _evidence(one["evidence"]),
            *[_facet(f"Code {_span(c)}", c) for c in one["code"]],
            "</section>",
        )
    )


def _count(runs: list[str]) -> str:
    return f"run {_text(runs[0])}" if len(runs) == 1 else f"{len(runs)} runs"


def _span(one: dict[str, Any]) -> str:
    until = f" until {_text(one['until'])}" if one["until"] else ""
    return f"since {_text(one['since'])}{until}"


def _runs(runs: list[dict[str, Any]]) -> str:
    rows = (
        (
            f'<span class="mono id">{_text(run["id"])}</span>',
            _word(run["state"]) + (" (inferred)" if run["inferred"] else ""),
            _time(run["startedAt"]),
            _time(run["endedAt"]) if run["endedAt"] else f"last heard {_time(run['lastHeardAt'])}",
            _text(run["written"]["rows"]),
            _text(run["error"]),
        )
        for run in runs
    )
    return _table(("run", "state", "started", "ended", "rows written", "error"), rows)


def _facet(title: str, one: dict[str, Any]) -> str:
    plain = [(key, value) for key, value in one["content"].items() if isinstance(value, str)]
    rows = [(_key(key), _text(value)) for key, value in plain if "\n" not in value]
    rows += [(_key(key), f"<pre>{_text(value)}</pre>") for key, value in plain if "\n" in value]
    rows += [
        (_key(key), _code(msgspec.json.encode(value).decode()))
        for key, value in one["content"].items()
        if not isinstance(value, str)
    ]
    head = f"<p>{title} <span class=muted>({_text(one['facet'])})</span></p>"
    return head + _table(("key", "value"), rows)


def _evidence(items: list[dict[str, Any]]) -> str:
    lines = _list(
        f"{_text(one.get('source'))} {_code(one.get('detail') or '')}"
        + (
            ""
            if one.get("observed") is None
            else " (observed)"
            if one["observed"]
            else " (derived)"
        )
        for one in items
    )
    return f"<p>Its inputs and outputs are known from</p>{lines}" if lines else ""


def _dataset(one: dict[str, Any]) -> str:
    rows = (
        (
            _time(schema["since"]),
            _time(schema["until"]),
            "; ".join(map(_text, schema["changes"])) or "as it was at the start",
            ", ".join(_code(f"{f['name']} {f['type'] or ''}".strip()) for f in schema["fields"]),
        )
        for schema in one["schemas"]
    )
    shown = _table(("since", "until", "changed", "columns"), rows)
    head = f'<section><h3>{_name(one["id"])} <span class="muted">{_text(one["store"])}</span></h3>'
    return (
        head + _owners(one) + (shown or '<p class="muted">No schema is known.</p>') + "</section>"
    )


def _readers(found: dict[str, Any]) -> str:
    rows = (
        (
            _name(one["id"]),
            ", ".join(_text(owner["name"]) for owner in one["owners"]),
            ", ".join(map(_name, one["inputs"])),
            ", ".join(map(_name, one["outputs"])),
            _had(one),
        )
        for one in found["readers"]
    )
    shown = _table(("job", "owners", "read", "wrote", "runs in the period"), rows)
    datasets = _list(_name(one["id"]) for one in found["downstream"])
    return (shown or "<p>No job is known to have read it in the period.</p>") + (
        f"<h3>Datasets it went into</h3>{datasets}" if datasets else ""
    )


def _had(one: dict[str, Any]) -> str:
    runs = one["runs"]
    if not runs:
        return "none"
    return f"{one['runCount']}, last {_text(runs[0]['startedAt'])} ({_text(runs[0]['state'])})"
