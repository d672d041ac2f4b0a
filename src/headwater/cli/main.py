"""Entry point of `headwater`: global options, sub-commands, and how errors end the program.

Exit codes: 0 done, 1 it failed, 2 the request was wrong, 3 this machine lacks something,
4 what was asked for is not there, 5 a change would break something or the log was changed,
6 doctor found something, 130 interrupted.
"""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path  # noqa: TC003  (typer reads the annotations)
from typing import Annotated, Any

import typer

import headwater
from headwater.cli import config as config_command
from headwater.cli import connect, lab, lake, outbox, questions, server, settings, spark
from headwater.cli.demo import demo
from headwater.cli.help import shape
from headwater.cli.mcp import mcp
from headwater.cli.output import AsJson, err, out, print_error, print_json
from headwater.errors import HeadwaterError, UsageError, missing_package

# Newer releases of typer carry a click of their own, so its class is found through typer.
ClickException: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

EXTRAS = {
    "connect": "connect", "demo": "all", "lab": "lab", "lake": "lake", "mcp": "mcp", "spark": "spark",
}  # fmt: skip
"""The extra that a command needs; the other commands are the server's."""
LAKE_OPTIONS = ("--lake", "--from-lake")
"""Options by which a command needs the lake's extra, which has the server's."""

app = typer.Typer(
    name="headwater",
    help="Live, end-to-end data lineage for streaming estates.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its tables cut long names of options
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(config_command.app, name="config")
app.add_typer(connect.app, name="connect")
app.add_typer(lab.app, name="lab")
app.add_typer(lake.app, name="lake")
app.add_typer(outbox.app, name="outbox")
app.add_typer(spark.app, name="spark")
server.register(app)
questions.register(app)
app.command()(demo)
app.command()(mcp)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"headwater {headwater.__version__}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings (TOML), see docs/configuration.md.",
            envvar="HEADWATER_CONFIG",
            show_default="~/.config/headwater/headwater.toml, else /etc/headwater/headwater.toml",
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001  (its callback)
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
    debug: Annotated[  # noqa: ARG001  (read by main)
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Live, end-to-end data lineage for streaming estates."""
    file = settings.read_file(context.command, config or settings.default_file())
    if file.problems and context.invoked_subcommand != "config":
        raise UsageError(f"{file.path}: {file.problems[0]}", hint="headwater config check")
    context.obj = file
    context.default_map = settings.install(context.command, file)


@app.command("version")
def version_command(as_json: AsJson = False) -> None:
    """Print the versions of Headwater and Python."""
    versions = {"headwater": headwater.__version__, "python": platform.python_version()}
    if as_json:
        print_json(versions)
    else:
        out.print("\n".join(f"{name} {version}" for name, version in versions.items()))


shape(app)


def main() -> None:
    """Run the command; an error is one clear line, its traceback only with --debug."""
    debug = "--debug" in sys.argv[1:]
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    sys.exit(_run(arguments, debug))


def _run(arguments: list[str], debug: bool) -> int:
    try:
        code = app(arguments, standalone_mode=False, prog_name="headwater")
    except (KeyboardInterrupt, typer.Abort):
        err.print("interrupted")
        return 130
    except BrokenPipeError:  # the reader of a pipe has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:  # noqa: BLE001
        if debug and not isinstance(error, ClickException):
            err.print_exception()
        return _explain(error, _extra(arguments))
    return code if isinstance(code, int) else 0


def _extra(arguments: list[str]) -> str:
    """The extra that a command needs, with what it was asked."""
    asks_lake = any(word.partition("=")[0] in LAKE_OPTIONS for word in arguments)
    before = ("", *arguments)
    words = zip(before, arguments, strict=False)
    command = (one for last, one in words if not one.startswith("-") and last != "--config")
    return EXTRAS.get(next(command, ""), "lake" if asks_lake else "server")


def _explain(error: Exception, extra: str) -> int:
    if isinstance(error, HeadwaterError):
        print_error(error)
        return error.exit_code
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("headwater"):
        return _explain(missing_package(error.name, extra), extra)
    if isinstance(error, ClickException):
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
        else:
            at = getattr(error, "ctx", None)
            where = at.command_path if at else "headwater"
            text = f"{settings.given_by(error)}{error.format_message()}"
            print_error(UsageError(text, hint=f"{where} --help"))
        return int(error.exit_code)
    print_error(
        HeadwaterError(
            f"{type(error).__name__}: {error}",
            hint="this is a fault of headwater's own: run it again with --debug and report it",
        )
    )
    return 1
