"""`headwater config`: which settings hold, and where each comes from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from headwater.cli.connect.options import check_interval, registry_endpoint
from headwater.cli.output import AsJson, escape, out, print_json, print_wide, table_of
from headwater.cli.server.serve import check_certificate, read_properties
from headwater.cli.server.store_options import seconds
from headwater.cli.settings import (
    SECTIONS,
    VARIABLES,
    Setting,
    SettingsFile,
    settings_of,
    unknown_variables,
    variable_in_use,
)
from headwater.errors import UsageError
from headwater.lineage.secrets import MASK, clean_value

__all__ = ["app"]

app = typer.Typer(help="Settings: which hold, and where each comes from.", no_args_is_help=True)


class SettingValue(NamedTuple):
    """The value of a setting, fit to be shown, and where it comes from."""

    setting: Setting
    value: str
    source: str


@app.command()
def show(
    context: typer.Context,
    section: Annotated[
        str | None, typer.Argument(metavar="[SECTION]", help="One section; all without it.")
    ] = None,
    flags: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- FLAG…]", help="With these flags of the section's command."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show every setting and whether it comes from a flag, a variable, the file or nowhere.

    Credentials are masked. `headwater config show server -- --port 6000` shows what would hold.
    """
    if section is not None and section not in SECTIONS:
        raise UsageError(f"no section {section}", hint=f"there are {', '.join(SECTIONS)}")
    root, file = context.find_root(), context.obj
    wanted = [section] if section else list(SECTIONS)
    held = [one for name in wanted for one in _held(root, file, name, flags or [])]
    variables = {
        name: MASK if about.secret else str(clean_value(os.environ[name]))
        for name, about in VARIABLES.items()
        if not section and os.environ.get(name)
    }
    if as_json:
        rows = [
            {
                "section": one.setting.section,
                "key": one.setting.key,
                "value": one.value,
                "from": one.source,
                "variable": one.setting.variable,
            }
            for one in held
        ]
        path = str(file.path) if file.path else None
        print_json({"file": path, "settings": rows, "variables": variables})
        return
    out.print(f"settings file: {escape(str(file.path or 'none'))}", soft_wrap=True)
    table = table_of("section", "setting", "value", "from")
    for one in held:
        cells = (one.setting.section, one.setting.key, one.value, one.source)
        table.add_row(*map(escape, cells))
    print_wide(table)
    if variables:
        other = table_of("variable", "value")
        for name, value in variables.items():
            other.add_row(name, escape(value))
        out.print()
        print_wide(other)


@app.command()
def check(context: typer.Context, as_json: AsJson = False) -> None:
    """Find what is wrong with the settings, without starting anything. Exit code 2 if something is."""
    root, file = context.find_root(), context.obj
    problems = [f"{file.path}: {problem}" for problem in file.problems]
    problems += unknown_variables(root.command)
    problems += [one for section in SECTIONS for one in _refused(root, file, section)]
    if as_json:
        path = str(file.path) if file.path else None
        print_json({"file": path, "ok": not problems, "problems": problems})
    else:
        for problem in problems:
            out.print(f"[red]wrong:[/] {escape(problem)}", soft_wrap=True)
        if not problems:
            out.print(f"{escape(str(file.path or 'no settings file'))}: nothing wrong")
    if problems:
        raise typer.Exit(UsageError.exit_code)


def _parsed(root: Any, section: str, flags: list[str], *, lenient: bool = False) -> Any:
    """The context in which a section's command would run, its values converted as they would be.

    Where it is `lenient`, a value that cannot be converted is no error yet.
    """
    at = root
    *groups, last = SECTIONS[section].command
    for name in groups:
        at = type(root)(at.command.commands[name], parent=at, info_name=name)
    command = at.command.commands[last]
    return command.make_context(last, list(flags), parent=at, resilient_parsing=lenient)


def _held(root: Any, file: SettingsFile, section: str, flags: list[str]) -> list[SettingValue]:
    parsed = _parsed(root, section, flags)
    found = []
    for setting in settings_of(root.command).values():
        if setting.section == section:
            value = parsed.params[setting.option.name]
            source = parsed.get_parameter_source(setting.option.name).name
            found.append(
                SettingValue(setting, _shown(setting, value), _origin(setting, source, file))
            )
    return found


def _refused(root: Any, file: SettingsFile, section: str) -> list[str]:
    at = _parsed(root, section, [], lenient=True)
    at.resilient_parsing = False
    found = []
    for setting in settings_of(root.command).values():
        if setting.section == section and (problem := _problem(at, setting)):
            where = _origin(setting, at.get_parameter_source(setting.option.name).name, file)
            found.append(f"{where}: [{section}] {setting.key}: {problem}")
    files = ("] certificate: ", "] key: ")
    if section == "server" and not any(name in one for one in found for name in files):
        try:
            check_certificate(at.params["certificate"], at.params["key"])
        except UsageError as error:
            found.append(f"[server] {_in_one(error)}")
    return found


def _problem(at: Any, setting: Setting) -> str:
    """What is wrong with the value that holds; empty where nothing is."""
    try:
        value = setting.option.process_value(at, setting.option.consume_value(at, {})[0])
    except typer.BadParameter as error:
        return str(error.message)
    except UsageError as error:
        return _in_one(error)
    return _unusable(setting, value)


def _unusable(setting: Setting, value: Any) -> str:
    """What the command would refuse of a value when it starts; empty where nothing is wrong."""
    if value is None or value == [] or setting.section == "lab":  # its folder may be new
        return ""
    for file in value if isinstance(value, list | tuple) else [value]:
        if isinstance(file, Path):
            try:
                file.stat()
            except OSError as error:
                return f"{file}: {error.strerror}"
    try:
        _read(setting, value)
    except UsageError as error:
        return _in_one(error)
    except ModuleNotFoundError:  # of the server's extra, which a machine without a server lacks
        return ""
    return ""


def _read(setting: Setting, value: Any) -> None:
    """Read a value that its option takes as any text or file, as the command does; raises UsageError."""
    if setting.section == "server":
        _read_for_server(setting.key, value)
    elif setting.section == "connect":
        _read_for_connect(setting.key, value)


def _read_for_server(key: str, value: Any) -> None:
    match key:
        case "keep" | "max-age":
            seconds(value, f"--{key}")
        case "store":
            from headwater.server.store.database import check_url

            check_url(value)
        case "token-file":
            from headwater.server.http.serve import read_tokens

            read_tokens(value)
        case "alerts":
            from headwater.server.alerts.rules import read_rules

            read_rules(value)
        case "forward-kafka":
            from headwater.server.forward import read_target

            read_target(value)
        case "kafka-config":
            read_properties(value)
        case "root-path":
            from headwater.server.http.proxies import read_root_path

            read_root_path(value)
        case "trusted-proxies":
            from headwater.server.http.proxies import Proxies

            Proxies(value)
        case "user-role":
            from headwater.server.http.auth import read_people

            read_people(value)


def _read_for_connect(key: str, value: Any) -> None:
    match key:
        case "poll" | "heartbeat" | "grace":
            check_interval(key, value)
        case "url":
            from headwater.connect.agent.clusters_file import endpoint_of

            endpoint_of([part for one in value for part in one.split(",")], {}, {}, "--url")
        case "registry-url":
            registry_endpoint(value, "--registry-url")
        case "clusters":
            from headwater.connect.agent.clusters_file import read_agent_config

            read_agent_config(value)
        case "mappings":
            from headwater.connect.agent.cluster_lineage import read_mapping_file

            for file in value:
                read_mapping_file(file)


def _in_one(error: UsageError) -> str:
    return f"{error.message}; {error.hint}" if error.hint else error.message


def _shown(setting: Setting, value: Any) -> str:
    if value is None or value == []:
        text = setting.option.show_default
        return f"({text})" if isinstance(text, str) else ""
    if isinstance(value, bool):
        return str(value).lower()
    values = value if isinstance(value, list | tuple) else [getattr(value, "value", value)]
    return ", ".join(str(clean_value({setting.key: str(one)})[setting.key]) for one in values)


def _origin(setting: Setting, source: str, file: SettingsFile) -> str:
    if source == "COMMANDLINE":
        return "flag"
    if source == "ENVIRONMENT":
        return f"${variable_in_use(setting.option)}"
    if source == "DEFAULT_MAP":
        line = file.lines.get((setting.section, setting.key))
        return f"{file.path}:{line}" if line else str(file.path)
    return "default"
