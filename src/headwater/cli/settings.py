"""Settings from a file and from variables, under the options that flags set.

`headwater.toml` has a table for each section, whose keys are the names of options. A flag is stronger
than a variable, a variable than the file, the file than the default of an option: click's own
order, which gets the file as its `default_map` and a variable of ours for every option of a section.
"""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "SECTIONS",
    "VARIABLES",
    "SettingsFile",
    "default_file",
    "given_by",
    "install",
    "read_file",
    "settings_of",
    "unknown_variables",
    "variable_in_use",
]

NAME = "headwater.toml"
LARGEST = 1_000_000
NEVER = ("help", "json")
"""Options that say what one call of a command is to do."""
CHOOSES = ("audit", "verify")
"""Checks a server instead of a store where an address is given."""


class Section(NamedTuple):
    """A table of the file: options of one command, which others share."""

    command: tuple[str, ...]
    """The command whose options are the keys."""
    about: str
    only: tuple[str, ...] = ()
    """The keys, where not every option of the command is one."""
    commands: tuple[str, ...] = ()
    """The commands and groups of commands that take the options they have by these names."""
    anywhere: tuple[str, ...] = ()
    """Keys that hold for options of this name of all other commands, too."""


SECTIONS = {
    "server": Section(
        ("server",),
        "the lineage server; `store` also holds for every command that works on a store",
        commands=("server", "up"),
        anywhere=("store",),
    ),
    "connect": Section(
        ("connect", "watch"),
        "the Kafka Connect agent, and `headwater connect` by hand",
        commands=("connect",),
        anywhere=("state",),
    ),
    "client": Section(
        ("mcp",),
        "the lineage server that commands ask",
        only=("url", "token-file"),
        anywhere=("url", "token-file"),
    ),
    "mcp": Section(
        ("mcp",),
        "questions of AI assistants over HTTP",
        only=("http", "http-token-file"),
        commands=("mcp",),
    ),
    "lab": Section(
        ("lab", "up"), "the embedded stack", only=("home",), commands=("lab",)
    ),
}  # fmt: skip


class Variable(NamedTuple):
    """A variable that no option and no key of the file stands for."""

    about: str
    secret: bool = False


VARIABLES = {
    "HEADWATER_CONFIG": Variable("the file of settings"),
    "HEADWATER_TOKEN": Variable(
        "the token that commands send to a server; of the server, one more that it accepts", True
    ),
    "HEADWATER_MCP_TOKEN": Variable("the token that callers of `headwater mcp --http` send", True),
    "CONNECT_PASSWORD": Variable("the password for Connect of `user`", True),
    "CONNECT_TOKEN": Variable("a bearer token for Connect", True),
    "SCHEMA_REGISTRY_USER_INFO": Variable("USER:PASSWORD for the schema registry", True),
    "MARQUEZ_TOKEN": Variable("the token for the Marquez that events are taken over from", True),
    "OPENLINEAGE_URL": Variable("where producers send events, and the server that commands ask"),
    "OPENLINEAGE_API_KEY": Variable("the token that producers send", True),
    "OPENLINEAGE_NAMESPACE": Variable("the namespace of jobs"),
    "OPENLINEAGE_CONFIG": Variable("openlineage-python's own file, for other transports"),
    "HEADWATER_STATE_DIR": Variable("the folder in which producers keep what is not yet sent"),
    "HEADWATER_HEARTBEAT_SECONDS": Variable("seconds between RUNNING events of an open run"),
    "HEADWATER_FLOW_SECONDS": Variable("seconds between flow samples of a Spark stream"),
    "HEADWATER_WATCHDOG": Variable("0: no process that ends the runs of a killed program"),
    "HEADWATER_CACHE": Variable("the folder for the lab's downloads"),
    "HEADWATER_PAGE": Variable("set by `headwater lab env`: the page on a port of its own"),
    "HEADWATER_PIPELINES": Variable(
        "set by `headwater lab env`: the demo's programs and connectors"
    ),
    "HEADWATER_LAKE": Variable(
        "the lake's Iceberg catalog, as `--lake` names it; `lake sql` and `lake analysis` read it"
    ),
    "HEADWATER_MAVEN_MIRROR": Variable("a mirror that the lab downloads from"),
}

# What Kubernetes sets for a Service, and what the lab marks its processes with.
_FOREIGN = re.compile(r"HEADWATER_LAB_|\w+_SERVICE_(HOST|PORT)|\w*_PORT_\d+_(TCP|UDP|SCTP)")
_ADDRESS = re.compile(r"(tcp|udp|sctp)://")


class Setting(NamedTuple):
    """One key of a section: the option it sets, by file or by variable."""

    section: str
    key: str
    option: Any

    @property
    def variable(self) -> str:
        """The variable that sets it."""
        return f"HEADWATER_{self.section}_{self.key}".upper().replace("-", "_")


class SettingsFile(NamedTuple):
    """The settings of a file, and what is wrong with it."""

    path: Path | None
    values: dict[tuple[str, str], Any]
    lines: dict[tuple[str, str], int]
    problems: list[str]


def default_file() -> Path | None:
    """The user's file, else the machine's.

    Never one in the current folder: it could send a token to an address of its own.
    """
    user = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    places = (Path(user) / "headwater" / NAME, Path("/etc/headwater") / NAME)
    return next((place for place in places if place.is_file()), None)


def settings_of(root: Any) -> dict[tuple[str, str], Setting]:
    """Every key of every section."""
    found = {}
    for name, section in SECTIONS.items():
        command = root
        for part in section.command:
            command = command.commands[part]
        for option, key in _options(command):
            if not section.only or key in section.only:
                found[name, key] = Setting(name, key, option)
    return found


def install(root: Any, file: SettingsFile) -> dict[str, Any]:
    """Give every option of a section its variable; the file as a `default_map` of these commands."""
    known = settings_of(root)
    return _defaults(root, (), known, file)


def _defaults(
    group: Any, path: tuple[str, ...], known: dict[tuple[str, str], Setting], file: SettingsFile
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        here = (*path, name)
        if hasattr(command, "commands"):
            found[name] = _defaults(command, here, known, file)
            continue
        found[name] = {}
        options = list(_options(command))
        keys = {key for _, key in options}
        for option, key in options:
            setting = known.get((_section(here, key), key))
            if setting is None or (here == CHOOSES and key == "url"):
                continue
            if (
                key == "store" and "url" in keys
            ):  # which of them is meant has to be given on the command line
                continue
            _add_variable(option, setting.variable)
            if (value := file.values.get(setting[:2])) is not None:
                found[name][option.name] = value
    return found


def _section(path: tuple[str, ...], key: str) -> str:
    """The section that sets this option of a command; empty where none does."""
    for name, section in SECTIONS.items():
        if path[0] in section.commands and (not section.only or key in section.only):
            return name
    return next((n for n, section in SECTIONS.items() if key in section.anywhere), "")


def _options(command: Any) -> Iterator[tuple[Any, str]]:
    for option in command.params:
        if option.param_type_name == "option":
            key = max(option.opts, key=len).lstrip("-")
            if key not in NEVER:
                yield option, key


def _add_variable(option: Any, variable: str) -> None:
    own = option.envvar
    if own is None:
        option.envvar = [variable]
        option.show_envvar = False  # there is one for each, see docs/configuration.md
    else:
        names = [own] if isinstance(own, str) else list(own)
        option.envvar = [variable, *(name for name in names if name != variable)]


def read_file(root: Any, path: Path | None) -> SettingsFile:
    """The known settings of a file; raises UsageError where it cannot be read."""
    if path is None:
        return SettingsFile(None, {}, {}, [])
    text, tables = _decoded(path)
    known = settings_of(root)
    file = SettingsFile(path, {}, {}, [])
    for section, table in tables.items():
        if section not in SECTIONS:
            file.problems.append(f"no section [{section}]{_near(section, SECTIONS)}")
        elif not isinstance(table, dict):
            file.problems.append(f"{section} is not a table: [{section}]")
        else:
            for key, value in table.items():
                setting = known.get((section, key))
                if setting is None:
                    problem = _unknown(section, key, known)
                elif not (problem := _misfit(setting.option, value)):
                    many = setting.option.multiple and not isinstance(value, list)
                    file.values[section, key] = [value] if many else value
                if problem:
                    file.problems.append(f"[{section}] {key}{problem}")
                file.lines[section, key] = _line(text, section, key)
    return file


def _decoded(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        with path.open("rb") as opened:
            body = opened.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"cannot read the settings {path}: {error.strerror}") from error
    if len(body) > LARGEST:
        raise UsageError(f"{path} is larger than {LARGEST:,} bytes")
    try:
        text = body.decode("utf-8-sig")
        return text, msgspec.toml.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: not TOML: {error}", hint="see docs/configuration.md") from None


def _unknown(section: str, key: str, known: dict[tuple[str, str], Setting]) -> str:
    elsewhere = next((one for one, its_key in known if its_key == key), None)
    if elsewhere:
        return f": no such key; there is one in [{elsewhere}]"
    near = _near(key, [its_key for one, its_key in known if one == section])
    return f": no such key{near}"


def _near(word: str, words: Any) -> str:
    found = get_close_matches(word.replace("_", "-"), words, n=1, cutoff=0.5)
    return f"; {found[0]}?" if found else f"; there are {', '.join(words)}"


def _misfit(option: Any, value: Any) -> str:
    """What keeps a value from an option before it is converted as that of a flag is."""
    if isinstance(value, list) and option.multiple:
        return "" if all(isinstance(one, str) for one in value) else ": not all of them are texts"
    if option.is_flag:
        return "" if isinstance(value, bool) else ": neither true nor false"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ": not a text or a number"
    return ""


def _line(text: str, section: str, key: str) -> int:
    """The line of a key, for people; 0 where the file is written in some other way."""
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*\"?([\w-]+)\"?\s*\]", line):
            table = header[1]
        elif table == section and re.match(rf"\s*\"?{re.escape(key)}\"?\s*=", line):
            return number
    return 0


def unknown_variables(root: Any) -> list[str]:
    """Variables that look like ours and set nothing, each with the one that may be meant."""
    known = {*VARIABLES, *(setting.variable for setting in settings_of(root).values())}
    found = [
        name
        for name in sorted(os.environ)
        if name.startswith("HEADWATER_")
        and name not in known
        and not _FOREIGN.match(name)
        and not (name.endswith("_PORT") and _ADDRESS.match(os.environ[name]))
    ]
    return [f"{name} sets nothing{_meant(name, known)}" for name in found]


def _meant(name: str, known: set[str]) -> str:
    end = name.removeprefix("HEADWATER")
    without_section = sorted((len(one), one) for one in known if one.endswith(end))
    near = [one for _, one in without_section] or get_close_matches(name, sorted(known), n=1)
    return f"; {near[0]}?" if near else ""


def given_by(error: Any) -> str:
    """The file or variable that gave an option its wrong value; empty where the command line did."""
    at, option = getattr(error, "ctx", None), getattr(error, "param", None)
    if at is None or option is None:
        return ""
    source = at.get_parameter_source(option.name)
    if source is not None and source.name == "DEFAULT_MAP":
        return f"{at.obj.path}: " if isinstance(at.obj, SettingsFile) else ""
    if source is not None and source.name == "ENVIRONMENT":
        return f"${variable_in_use(option)}: "
    return ""


def variable_in_use(option: Any) -> str:
    """The variable that an option's value comes from; the first that is set counts."""
    names = [option.envvar] if isinstance(option.envvar, str) else option.envvar
    return next(name for name in names if os.environ.get(name))
