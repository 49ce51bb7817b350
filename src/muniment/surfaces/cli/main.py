"""The `muniment` command: a table of commands, and nothing loaded until one is called."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

__all__ = ["COMMANDS", "LazyGroup", "cli", "main"]

# name → (module, attribute, one line of help). `--help` reads this table alone.
COMMANDS: dict[str, tuple[str, str, str]] = {
    "demo": ("muniment.surfaces.cli.demo", "demo", "Run the main job on a sample, end to end."),
    "ingest": ("muniment.surfaces.cli.ingest", "ingest", "Write a file of messages into the ledger."),
    "search": ("muniment.surfaces.cli.search", "search", "Find what a user's memory holds for a query."),
    "compose": ("muniment.surfaces.cli.compose", "compose", "Compose a packet for a planner, tool or responder."),
    "replay": ("muniment.surfaces.cli.replay", "replay", "Compose a kept build again: the same bytes."),
    "compare": ("muniment.surfaces.cli.compare", "compare", "Say what a build would have been under another policy."),
    "diff": ("muniment.surfaces.cli.diff", "diff", "Say what changed between two builds, and why."),
    "explain": ("muniment.surfaces.cli.explain", "explain", "Say what a build took, what it left out, and why."),
    "why": ("muniment.surfaces.cli.why", "why", "Say which builds told a model a text, and from which event."),
    "facts": ("muniment.surfaces.cli.facts", "facts", "List a user's facts and what they rest on."),
    "extract": ("muniment.surfaces.cli.extract", "extract", "Propose facts from what a user said, with their quotes."),
    "episodes": ("muniment.surfaces.cli.episodes", "episodes", "List a user's episodes and their best sentences."),
    "users": ("muniment.surfaces.cli.users", "users", "List the users of a tenant and when they were seen."),
    "run": ("muniment.surfaces.cli.run", "run", "List runs, show how one stands, open a locked one."),
    "claims": ("muniment.surfaces.cli.claims", "claims", "List what a run claims and the words it rests on."),
    "snapshot": ("muniment.surfaces.cli.snapshot", "snapshot", "Show, take or check a snapshot of a run."),
    "narrative": ("muniment.surfaces.cli.narrative", "narrative", "Tell a snapshot in words, or what changed."),
    "resume": ("muniment.surfaces.cli.resume", "resume", "Say what a restart of a run would begin with."),
    "drift": ("muniment.surfaces.cli.drift", "drift", "Measure loops, stalls and what long runs forget."),
    "corpus": ("muniment.surfaces.cli.corpus", "corpus", "Add, list, search, show or retract documents."),
    "research": ("muniment.surfaces.cli.research", "research", "Take a question to a checked report with your agents."),
    "recall": ("muniment.surfaces.cli.recall", "recall", "Show what earlier runs taught that fits a task."),
    "fold": ("muniment.surfaces.cli.fold", "fold", "Learn from a run by what a verifier said of it."),
    "plan": ("muniment.surfaces.cli.plan", "plan", "Make, list or show plans on learned memory."),
    "apply": ("muniment.surfaces.cli.plan", "apply", "Apply a plan, all of it or nothing."),
    "undo": ("muniment.surfaces.cli.plan", "undo", "Take an applied plan back."),
    "bank": ("muniment.surfaces.cli.bank", "bank", "List, show or tidy what was learnt, and its logs."),
    "rules": ("muniment.surfaces.cli.rules", "rules", "Test, try, promote and take back rules; see how they fare."),
    "reuse": ("muniment.surfaces.cli.reuse", "reuse", "List seeds and tactics; choose a seed."),
    "patterning": ("muniment.surfaces.cli.patterning", "patterning", "Find data weights for a wanted change, offline."),
    "flowmap": ("muniment.surfaces.cli.flowmap", "flowmap", "Map where runs go wrong and what would help."),
    "rollout": ("muniment.surfaces.cli.rollout", "rollout", "Have an agent try a task, as often as it takes."),
    "route": ("muniment.surfaces.cli.route", "route", "Say how to try a task, why, and what would be cheaper."),
    "observe-rates": ("muniment.surfaces.cli.route", "observe_rates", "Measure what stays unknown, and what to do."),
    "sandbox": ("muniment.surfaces.cli.sandbox", "sandbox", "Run a command walled off, and say what it met."),
    "validate": ("muniment.surfaces.cli.validate", "validate", "Check documents against their contract."),
    "verify-output": ("muniment.surfaces.cli.verify_output", "verify_output", "Verify an output: form, facts, a run."),
    "check": ("muniment.surfaces.cli.check", "check", "Check outputs against a constraint file, for CI."),
    "schema": ("muniment.surfaces.cli.schema", "schema", "List, show or export the JSON Schemas."),
    "export": ("muniment.surfaces.cli.transfer", "export_", "Write a store out as JSON lines."),
    "import": ("muniment.surfaces.cli.transfer", "import_", "Read an export into a store."),
    "verify": ("muniment.surfaces.cli.verify", "verify", "Walk the hash chains and name the first broken link."),
    "forget": ("muniment.surfaces.cli.forget", "forget", "Erase content everywhere and print the receipt."),
    "scrub": ("muniment.surfaces.cli.scrub", "scrub", "Rebuild the store's files without what was forgotten."),
    "serve": ("muniment.surfaces.cli.serve", "serve", "Serve the store over HTTP."),
    "view": ("muniment.surfaces.cli.view", "view", "Write a run as a page that needs no server."),
    "mcp": ("muniment.surfaces.cli.mcp", "mcp", "Serve one user's memory to an agent over MCP (stdio)."),
    "keys": ("muniment.surfaces.cli.keys", "keys", "Make, list, rotate and revoke the API keys of a server."),
    "doctor": ("muniment.surfaces.cli.doctor", "doctor", "Say what is installed, what is missing, how to get it."),
}


class LazyGroup(click.Group):
    """A group whose commands are named in a table and imported when called."""

    def __init__(self, *args: Any, table: dict[str, tuple[str, str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.table, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return super().get_command(ctx, cmd_name)
        module, attribute, _ = self.table[cmd_name]
        try:
            command: click.Command = getattr(importlib.import_module(module), attribute)
        except ModuleNotFoundError as error:
            if error.name is None or not module.startswith(error.name):
                raise
            raise click.ClickException(f"the command {cmd_name!r} is not part of this build") from None
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in self.table.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.table and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], self.table, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise click.UsageError(f"No such command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"muniment {version('muniment')}")
    ctx.exit()


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
def cli() -> None:
    """Evidence-first memory and context for LLM agents."""


def main() -> None:
    """The entry point of the installed script and of `python -m muniment`."""
    try:
        cli.main(prog_name="muniment", standalone_mode=False)
    except click.Abort:
        click.echo("stopped; nothing was done", err=True)
        sys.exit(1)
    except click.UsageError as error:
        sys.exit(_refuse(error))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)


def _refuse(error: click.UsageError) -> int:
    """A question that cannot be read, in the same shape as every other error."""
    from muniment.errors import InvalidInput
    from muniment.surfaces.cli.output import EXIT_USAGE, fail

    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # a group alone; known since click 8.2
        click.echo(error.format_message(), err=True)
        return EXIT_USAGE
    where = error.ctx.command_path if error.ctx is not None else "muniment"
    problem = InvalidInput(error.format_message(), hint=f"{where} --help")
    return fail(problem, "--json" in sys.argv)
