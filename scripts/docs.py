"""Write the generated parts of the docs again; `--check` only says which are out of date.

A generated part stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer.main
from bench import _lake_results
from tests.integration.connect.test_classes import RUN

from headwater.cli.main import app
from headwater.cli.settings import SECTIONS, VARIABLES, settings_of
from headwater.connect.families import BUILT_IN
from headwater.lab.files.artifacts import lock
from headwater.lab.files.cache import Cache
from headwater.lab.files.plugins import PREFIX, plugins
from headwater.lab.files.relock import BUNDLES
from headwater.lab.home import Home
from headwater.lab.services import COMPANIONS, SERVICES
from headwater.lab.services.base import LabContext, Service
from headwater.lab.stories import STORIES
from headwater.lake.tables import TABLES
from headwater.lineage.naming import STORES, Store
from scripts.licences import licences
from scripts.pins import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).parents[1]
PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def services() -> str:
    def row(service: Service) -> list[str]:
        size = sum(a.size for a in lock().bundle(service.name)) / 1e6
        comes = f"{size:.0f} MB" if size else "with the Python packages"
        when = "when named" if service.optional else "by default"
        return [
            f"`{service.name}`",
            service.title,
            service.version(),
            ", ".join(f"`{need}`" for need in service.needs) or "",
            when,
            comes,
        ]

    text = table(
        ["service", "what it is", "version", "needs", "started", "download"],
        (row(service) for service in SERVICES.values()),
    )
    for name, others in COMPANIONS.items():
        text += (
            f"\n`headwater lab up {name}` starts {', '.join(f'`{o}`' for o in others)} with it.\n"
        )
    return text


def connect_plugins() -> str:
    def row(name: str) -> list[str]:
        artifacts = lock().bundle(PREFIX + name)
        bundle = next(b for b in BUNDLES if PREFIX + name in b.needed_by)
        _, main, version = bundle.roots[0].coordinate.split(":")
        size = sum(a.size for a in artifacts) / 1e6
        return [f"`{name}`", f"`{main}` {version}", str(len(artifacts)), f"{size:.0f} MB"]

    return table(["plug-in", "main artifact", "files", "size"], map(row, plugins()))


def environment() -> str:
    context = LabContext(Home(Path("/nonexistent/lab")), Cache(Path("/nonexistent/cache")))
    context.home.save = lambda: None  # type: ignore[method-assign]
    settings = context.home.settings
    settings.logins.producer = "hw_" + "…"
    secrets = [settings.postgres_password, settings.s3_secret_key]
    secrets += msgspec.structs.astuple(settings.logins)
    rows = []
    for service in SERVICES.values():
        settings.secure = False
        always = service.env(context)
        settings.secure = True
        for name, value in service.env(context).items():
            shown = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:PORT", value)
            for secret in secrets:
                shown = shown.replace(secret, "…")
            shown = re.sub(r"^\d+$", "PORT", shown).replace("/nonexistent/lab", "HOME")
            of = f"`{service.name}`" + ("" if name in always else ", `--secure`")
            rows.append([f"`{name}`", of, f"`{shown}`"])
    return table(["variable", "of", "looks like"], rows)


def commands() -> str:
    group: Any = typer.main.get_command(app)
    rows = []
    for name, command in group.commands["lab"].commands.items():
        arguments = [
            p.metavar or f"{p.name.upper()}"
            for p in command.params
            if p.param_type_name == "argument"
        ]
        options = [max(p.opts, key=len) for p in command.params if p.param_type_name == "option"]
        usage = " ".join(["headwater lab", name, *arguments])
        summary = " ".join((command.help or "").strip().partition("\n\n")[0].split())
        rows.append([f"`{usage}`", summary, " ".join(f"`{o}`" for o in options)])
    return table(["command", "what it does", "options"], rows)


def stories() -> str:
    return table(
        ["story", "what happens", "what lineage shows"],
        ([f"`{story.name}`", story.title, story.shows] for story in STORIES.values()),
    )


def make_targets() -> str:
    found = re.findall(r"^([a-z-]+):.*?## (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return table(["command", "what it does"], ([f"`make {name}`", about] for name, about in found))


def connectors() -> str:
    """Every connector plug-in: its family, its classes and how each is tested, the keys that are read."""
    lines = [
        "| family | connector | tested | type | outside Kafka | keys read |",
        "|---|---|---|---|---|---|",
    ]
    for plugin in BUILT_IN:
        classes = [name for name in plugin.classes if not name.endswith("*")]
        names = "<br>".join(f"`{name}`" for name in classes)
        tested = "<br>".join("run" if name in RUN else "golden" for name in classes)
        keys = ", ".join(f"`{key}`" for key in dict.fromkeys(plugin.keys))
        rest = f"{plugin.role} | {plugin.stores} | {keys}"
        lines.append(f"| {plugin.family} | {names} | {tested} | {rest} |")
    return "\n".join(lines) + "\n"


def transform_previews() -> str:
    """What preview says of configurations with the lineage transform; tests hold it to that."""
    cases = json.loads((ROOT / "tests/fixtures/connect/lab.json").read_text())

    def code(names: Iterable[str]) -> str:
        return "<br>".join(f"`{name}`" for name in names)

    def row(case: dict[str, Any]) -> list[str]:
        expected, config = case["expected"], case["config"]
        # The kind of a dataset comes before its name.
        sides = ([d.partition(" ")[2] for d in expected[side]] for side in ("inputs", "outputs"))
        links = [link for names in expected.get("symlinks", {}).values() for link in names]
        columns = sum(len(edge.get("columns", ())) for edge in expected["edges"])
        return [
            f"`{case['case']}`",
            f"`{config['connector.class'].rpartition('.')[2]}`",
            *(code(side) for side in sides),
            code(links),
            str(columns or ""),
        ]

    header = ["configuration", "connector", "reads", "writes", "its own name for that", "columns"]
    return table(header, map(row, cases))


def naming(*, ours: bool) -> str:
    """How the datasets of each store are named."""

    def row(store: Store) -> list[str]:
        port = str(store.port) if store.port else ""
        if port and "port" not in store.fields:
            port += ", not written"
        cells = (store.title, f"`{store.key}`", f"`{store.namespace}`", f"`{store.name}`")
        aliases = ", ".join(f"`{alias}`" for alias in store.schemes)
        return [*cells, port, aliases, *([store.why] if ours else [])]

    header = ["store", "key", "namespace", "name", "default port", "also read as"]
    rows = (row(store) for store in STORES.values() if store.ours == ours)
    return table([*header, *(["why"] if ours else [])], rows)


RESULTS = ROOT / "bench" / "results"


def locked(bundle: str) -> str:
    """The version of what the lab fetches under this name."""
    found = next(b for b in BUNDLES if bundle in b.needed_by)
    return found.roots[0].coordinate.split(":")[2]


def results(bench: str) -> dict[str, Any]:
    """What a benchmark found when it was run with `--write`."""
    found: dict[str, Any] = json.loads((RESULTS / f"{bench}.json").read_text())
    return found


def when(bench: str, *parts: str) -> str:
    """When, at which commit and on what these parts of a benchmark were measured."""
    stamps = results(bench)["measured"]
    each = {json.dumps(stamps[part]): stamps[part] for part in parts}.values()
    told = (
        f"on {s['date']} at commit `{s['commit']}` (version {s['version']}), on {s['cores']} cores"
        for s in each
    )
    return f"\nMeasured {'; '.join(told)}.\n"


def spark_counts() -> str:
    """How many cases each tells exactly."""
    head = "".join(spark_cases().splitlines(keepends=True)[:3]).replace("| case |", "| |")
    return head + when("spark_cases", "cases")


def spark_cases() -> str:
    """From what `bench/spark_cases.py --write` found."""
    shown = {"exact": "exact", "sources": "sources only", "wrong": "wrong", "none": "nothing"}
    parts = ("datasets", "columns", "rows")
    tellers = {"headwater": "Headwater", "jar": "jar"}
    cases = results("spark_cases")["cases"]

    def cell(case: dict[str, Any], who: str, part: str) -> str:
        word = case[who][part]
        return "" if part not in case["asks"] and word == "exact" else shown[word]

    def count(who: str, part: str) -> str:
        asked = [case for case in cases if part in case["asks"]]
        return f"{sum(case[who][part] == 'exact' for case in asked)} of {len(asked)}"

    pairs = [(who, part) for who in tellers for part in parts]
    header = ["case", *(f"{tellers[who]}: {part}" for who, part in pairs)]
    rows = [["**exact**", *(f"**{count(who, part)}**" for who, part in pairs)]]
    rows += [
        [f"`{case['case']}`", *(cell(case, who, part) for who, part in pairs)] for case in cases
    ]
    return table(header, rows) + when("spark_cases", "cases")


def measured(bench: str, *parts: str) -> str:
    """Tables of what a benchmark found when it was run with `--write`."""
    found = results(bench)
    modes = {"headwater": "Headwater", "jar": f"OpenLineage jar {locked('openlineage')}"}

    def cell(value: Any) -> str:
        if isinstance(value, list):
            return f"{value[0]} to {value[1]}" if value else ""
        if isinstance(value, int) and value >= 10_000:
            return f"{value:,}"
        return "" if value is None else modes.get(value, str(value))

    tables = []
    for rows in filter(None, (found[part] for part in parts)):
        heads = list(dict.fromkeys(head for row in rows for head in row))
        tables.append(table(heads, ([cell(row.get(head)) for head in heads] for row in rows)))
    return "\n".join(tables) + when(bench, *parts)


def server_speed() -> str:
    """From what `bench/server_load.py --write` found."""
    figures = results("server_load")["figures"]
    works = list(dict.fromkeys(work for found in figures.values() for work in found))
    rows = ([work, *(found.get(work, "") for found in figures.values())] for work in works)
    return table(["work", *figures], rows) + when("server_load", "figures")


def settings() -> str:
    """Every key of the settings file, from the options that it sets."""
    known = settings_of(typer.main.get_command(app)).values()
    parts = []
    for name, section in SECTIONS.items():
        rows = []
        for setting in (one for one in known if one.section == name):
            option = setting.option
            own = [option.envvar] if isinstance(option.envvar, str) else option.envvar or []
            variables = dict.fromkeys([setting.variable, *own])
            rows.append(
                [
                    f"`{setting.key}`",
                    ", ".join(f"`{one}`" for one in variables),
                    _default(option),
                    " ".join((option.help or "").split()),
                ]
            )
        header = ["key", "variable", "default", "what it is"]
        parts.append(f"### [{name}]\n\n{_sentence(section.about)}\n\n{table(header, rows)}")
    return "\n".join(parts)


def _default(option: Any) -> str:
    if isinstance(option.show_default, str):
        return option.show_default
    value = option.default
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return "" if value is None else f"`{getattr(value, 'value', value)}`"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def variables() -> str:
    """The variables that are read besides."""
    return table(
        ["variable", "what it is"],
        (
            [f"`{name}`", f"{one.about} (a secret)" if one.secret else one.about]
            for name, one in VARIABLES.items()
        ),
    )


def peers() -> str:
    """The server's figures beside those of its peers that are known."""
    figures, known = results("server_load")["figures"], results("peers")
    rows = (
        [work, *(f[work] for f in figures.values()), *rest]
        for work, rest in known["figures"].items()
    )
    heads = [f"Headwater, {name}" for name in figures]
    others = [" ".join(one) for one in known["peers"].items()]
    theirs = known["measured"]["figures"]
    told = (
        f"{' and '.join(others)}: on {theirs['date']} by the benchmark of commit"
        f" `{theirs['commit']}`, on {theirs['cores']} cores.\n"
    )
    return table(["work", *heads, *others], rows) + when("server_load", "figures") + told


def facets() -> str:
    """Headwater's own facets from their schemas."""

    def row(path: Path) -> list[str]:
        schema = json.loads(path.read_text())
        described = schema if "description" in schema else next(iter(schema["$defs"].values()))
        parts = [described, *described.get("allOf", ())]
        description = next(part["description"] for part in parts if "description" in part)
        fields = [f for p in parts for f in p.get("properties", {}) if not f.startswith("_")]
        return [
            f"[`{path.stem}`](facets/{path.name})",
            description,
            ", ".join(f"`{f}`" for f in fields),
        ]

    schemas = sorted((ROOT / "docs/facets").glob("*.json"))
    return table(["facet", "what it says", "fields"], map(row, schemas))


def third_parties() -> str:
    """What is shipped or fetched of others' work, by kind and licence; of jars who publishes them."""
    tables = []
    for kind, names in licences().items():
        groups: dict[str, Counter[str]] = {}
        for name, licence in names.items():
            groups.setdefault(licence, Counter())[name.partition(":")[0]] += 1
        rows = (
            [licence, ", ".join(f"{name} ({n})" if n > 1 else name for name, n in group.items())]
            for licence, group in sorted(groups.items())
        )
        tables.append(table(["licence", f"{len(names)} {KINDS[kind]}"], rows))
    return "\n".join(tables)


def lake_costs() -> str:
    """From what `bench/lake.py --write` found."""
    results = _lake_results.kept()
    lines = "".join(f"- {line}\n" for line in _lake_results.said(results))
    return f"{table(*_lake_results.loads(results))}\n{lines}{when('lake', *results['loads'])}"


def lake_tables() -> str:
    """The lake's tables, column by column."""
    parts = []
    for one in TABLES:
        rows = ([f"`{column.name}`", column.type, column.about] for column in one.columns)
        parts.append(f"### {one.name}\n\n{one.about}\n\n{table(['column', 'type', 'what'], rows)}")
    return "\n".join(parts)


PARTS: dict[str, Callable[[], str]] = {
    "settings": settings,
    "variables": variables,
    "services": services,
    "connect-plugins": connect_plugins,
    "environment": environment,
    "lab-commands": commands,
    "stories": stories,
    "make-targets": make_targets,
    "connectors": connectors,
    "transform-previews": transform_previews,
    "naming-openlineage": partial(naming, ours=False),
    "naming-ours": partial(naming, ours=True),
    "spark-cases": spark_cases,
    "spark-costs": partial(measured, "spark", "batches", "costs"),
    "spark-statements": partial(measured, "spark", "statements"),
    "spark-paired": partial(measured, "spark", "paired"),
    "server-speed": server_speed,
    "answers-speed": partial(measured, "answers", "questions", "alerts", "machine"),
    "facets": facets,
    "peers": peers,
    "spark-counts": spark_counts,
    "spark-batches": partial(measured, "spark", "batches"),
    "pipeline-cost": partial(measured, "pipeline", "lineage"),
    "third-parties": third_parties,
    "lake-tables": lake_tables,
    "lake-costs": lake_costs,
    "lake-cluster": lambda: table(*_lake_results.cluster(_lake_results.kept())),
    "pipeline-speed": partial(measured, "pipeline", "lineage", "scale"),
}


def render(text: str) -> str:
    """The text with every generated part in it made anew."""
    return PART.sub(lambda m: f"{m[1]}{PARTS[m['name']]()}{m[3]}", text)


def outdated() -> dict[Path, str]:
    """The pages whose generated parts are not as the code says, and how they should read."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    fresh = {page: render(page.read_text()) for page in pages}
    return {page: text for page, text in fresh.items() if text != page.read_text()}


def main() -> None:
    stale = outdated()
    for page, text in stale.items():
        print(page.relative_to(ROOT))
        if "--check" not in sys.argv:
            page.write_text(text)
    if stale and "--check" in sys.argv:
        sys.exit("out of date: run make docs")


if __name__ == "__main__":
    main()
