"""`headwater connect apply`: connectors from files, validated first."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from typing import Annotated

import typer

from headwater.cli.connect.options import LoginOptions, Urls, cluster_config, connect_to
from headwater.cli.options import spread
from headwater.cli.output import AsJson, err, escape, out, print_json
from headwater.errors import HeadwaterError


@spread
def apply(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Connectors, one a file.")],
    *,
    url: Urls = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    login: LoginOptions,
    as_json: AsJson = False,
) -> None:
    """Make or change connectors: each is validated first, and what changes is shown."""
    from headwater.connect.commands.apply import changes, faults, fit, require_class
    from headwater.connect.commands.connector_file import read_connector

    wanted = [read_connector(path) for path in files]
    connect = connect_to(cluster_config(url, login))
    plugins = connect.plugins(connectors_only=False)
    available = {plugin["class"] for plugin in plugins}
    plans = []
    for connector in wanted:
        name = connector.name
        require_class(connector.config, plugins)
        config, left_out, kept = fit(connector.config, available)
        for transform in left_out:
            declared = f"; what it declares is kept as {', '.join(kept)}" if kept else ""
            err.print(
                f"[yellow]note:[/] {escape(name)}: transform {escape(transform)} is left out: the "
                f"worker lacks its plug-in; the agent reports the lineage without it"
                f"{escape(declared)}",
                soft_wrap=True,
            )
        wrong = faults(connect.validate(config))
        if wrong:
            raise HeadwaterError(
                f"{name}: the plug-in refuses the configuration: {'; '.join(wrong)}",
                hint="nothing was changed",
            )
        passwords = connect.passwords(config["connector.class"])
        before = connect.entry(name).info.config if connect.exists(name) else None
        found = changes(before, config, passwords)
        plans.append((name, config, before is None, found, (left_out, kept)))
    for name, config, _, found, _ in plans:
        if found and not dry_run:
            connect.put(name, config)
    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "created": new,
                    "applied": bool(found) and not dry_run,
                    "changes": [change._asdict() for change in found],
                    "leftOut": left_out,
                    "kept": kept,
                }
                for name, _, new, found, (left_out, kept) in plans
            ]
        )
        return
    for name, _, new, found, _ in plans:
        word = ("new" if new else "changed") if found else "as it was"
        many = f", {len(found)} settings" if new else ""
        text = f"[bold]{escape(name)}[/] {word}{many}{' (not applied)' if dry_run else ''}"
        out.print(text, soft_wrap=True)
        # What a new connector is made of is in its file; --dry-run shows it without its secrets.
        for setting, old, now, masked in found if dry_run or not new else []:
            if old is not None:
                out.print(f"  [red]- {escape(setting)} = {escape(old)}[/]", soft_wrap=True)
            if now is not None:
                note = "  (what changes is masked)" if masked else ""
                out.print(f"  [green]+ {escape(setting)} = {escape(now)}{note}[/]", soft_wrap=True)
