"""The `muniment` command: the tree of commands, and one shape for whatever cannot be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from muniment import __version__
from muniment.errors import MunimentError
from muniment.surfaces.cli.groups import TreeGroup
from muniment.surfaces.cli.terminal import echo
from muniment.surfaces.cli.tree import TREE

__all__ = ["Root", "cli", "main"]

_CONFIG = "MUNIMENT_CONFIG"


class Root(TreeGroup):
    """The root: what cannot be read is answered in the same shape as every other error."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        given = list(sys.argv[1:] if args is None else args)
        if not standalone_mode:
            return super().main(given, prog_name, complete_var, standalone_mode=False, **extra)
        try:
            code = super().main(given, "muniment", complete_var, standalone_mode=False, **extra)
        except click.Abort:
            echo("stopped; nothing was done", err=True)
            sys.exit(1)
        except click.UsageError as error:
            sys.exit(_refuse(error, "--json" in given))
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except MunimentError as error:  # of a command that cannot be loaded here
            from muniment.surfaces.cli.output import fail

            sys.exit(fail(error, "--json" in given))
        sys.exit(code if isinstance(code, int) else 0)


def _refuse(error: click.UsageError, as_json: bool) -> int:
    """A question that cannot be read."""
    from muniment.errors import InvalidInput
    from muniment.surfaces.cli.output import EXIT_USAGE, fail

    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # a group alone; known since click 8.2
        echo(error.format_message(), err=True)
        return EXIT_USAGE
    where = error.ctx.command_path.strip() if error.ctx is not None else "muniment"
    return fail(InvalidInput(error.format_message(), hint=f"{where} --help"), as_json)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    echo(f"muniment {__version__}")
    ctx.exit()


def _use_config(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Have everything that this command reads and starts read that file."""
    if path is None or ctx.resilient_parsing:
        return
    before = os.environ.get(_CONFIG)
    os.environ[_CONFIG] = os.path.abspath(path)

    def restore() -> None:
        if before is None:
            del os.environ[_CONFIG]
        else:
            os.environ[_CONFIG] = before

    ctx.call_on_close(restore)


cli = Root(
    (),
    TREE,
    help="Evidence-first memory and context for LLM agents.",
    context_settings={"help_option_names": ["-h", "--help"]},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_version,
            help="Show the version.",
        ),
        click.Option(
            ["--config"],
            metavar="FILE",
            expose_value=False,
            callback=_use_config,
            help="Read it in place of muniment.toml.",
        ),
    ],
)


def main() -> None:
    """The entry point of the installed script and of `python -m muniment`."""
    cli.main()
