"""Entry point of `headwater`: global options, sub-commands, and how errors end the program.

Exit codes: 0 done, 1 it failed, 2 the request was wrong, 3 this machine lacks something,
130 interrupted.
"""

from __future__ import annotations

import platform
import sys
from typing import Annotated

import click
import typer

import headwater
from headwater.cli import lab
from headwater.cli.demo import demo
from headwater.cli.output import AsJson, err, out, print_error, print_json
from headwater.errors import HeadwaterError

app = typer.Typer(
    name="headwater",
    help="Live, end-to-end data lineage for streaming estates.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(lab.app, name="lab")
app.command()(demo)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"headwater {headwater.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version.", callback=_version, is_eager=True),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show a traceback when something fails.")
    ] = False,
) -> None:
    """Live, end-to-end data lineage for streaming estates."""


@app.command("version")
def version_command(as_json: AsJson = False) -> None:
    """Print the versions of Headwater and Python."""
    versions = {"headwater": headwater.__version__, "python": platform.python_version()}
    if as_json:
        print_json(versions)
    else:
        out.print("\n".join(f"{name} {version}" for name, version in versions.items()))


def main() -> None:
    """Run the command; an error is one clear line, its traceback only with --debug."""
    debug = "--debug" in sys.argv[1:]
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        code = app(arguments, standalone_mode=False)
    except click.exceptions.Abort:
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except KeyboardInterrupt:
        err.print("interrupted")
        code = 130
    except BrokenPipeError:  # the reader of a pipe has gone, as `head` does
        sys.stderr.close()
        code = 0
    except HeadwaterError as error:
        if debug:
            err.print_exception()
        print_error(error)
        code = error.exit_code
    except Exception as error:  # noqa: BLE001
        if debug:
            err.print_exception()
        print_error(
            HeadwaterError(
                f"{type(error).__name__}: {error}",
                hint="this is a fault of headwater's own: run it again with --debug and report it",
            )
        )
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
