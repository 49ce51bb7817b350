"""The `muniment` command: the tree of commands, one line each, and the groups that load a command when it is called.

`--help` and completion read the tree and load nothing else. Everyday commands are at the top, the rest in groups.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from muniment import __version__
from muniment.errors import InvalidInput, MunimentError
from muniment.surfaces.cli.terminal import echo

__all__ = ["TREE", "DefaultGroup", "Entry", "cli", "list_commands", "load_command", "main"]

_CONFIG = "MUNIMENT_CONFIG"


class Entry(NamedTuple):
    """A command, or a group of them."""

    summary: str
    home: str = ""
    """The command's function, as `module:name`."""
    entries: Mapping[str, Entry] = {}
    """The commands of a group, in display order."""
    about: str = ""
    default: str = ""
    """The command that runs if none of the group's commands is named."""
    hidden: bool = False


def _command(summary: str, home: str, *, hidden: bool = False) -> Entry:
    return Entry(summary, f"muniment.surfaces.cli.{home}", hidden=hidden)


def _group(summary: str, about: str = "", default: str = "", /, **entries: Entry) -> Entry:
    named = {name.strip("_").replace("_", "-"): entry for name, entry in entries.items()}
    return Entry(summary, "", named, about, default)


_HOSTS = "muniment.surfaces.hosts.commands"

_RUN = _group(
    "Runs: their state, their claims, their snapshots.",
    list=_command("List runs, oldest first.", "runs:list_"),
    show=_command("Show a run: its state, claims, conflicts, failures and questions.", "runs:show"),
    turns=_command("List the messages of a run or a user, with the packets composed between them.", "runs:turns"),
    bill=_command("Show what a recorded conversation cost, with memory and without.", "billing:bill"),
    snapshot=_command("Show, take or check a snapshot of a run.", "runs:snapshot"),
    resume=_command("Show what a restart of a run would begin with.", "runs:resume"),
    unlock=_command("Open a run again after it was locked.", "runs:unlock"),
    view=_command("Write a run as an HTML page that needs no server.", "runs:view"),
)
_MEMORY = _group(
    "The memory of a user: events, episodes, candidates for facts.",
    "`muniment search` and `muniment facts` read it, `muniment forget` erases from it.",
    events=_command("List a user's events, session by session, in order.", "memory:events"),
    episodes=_command("List a user's episodes and their best sentences.", "memory:episodes"),
    extract=_command("Propose facts from a user's messages by rule, with their quotes.", "memory:extract"),
    candidates=_command("List the candidates for facts and their status.", "memory:candidates"),
)
_PACKET = _group(
    "Packets that were composed.",
    "`muniment compose` makes one, `replay`, `diff` and `explain` take its id.",
    list=_command("List the builds that are kept, newest first.", "packets:list_"),
    preview=_command("Show what a build would be with other settings or another policy.", "packets:preview"),
    in_view=_command("List what was before the model with a build, and since when.", "billing:in_view"),
)
_CORPUS = _group(
    "Documents as evidence: chunks that can be searched and cited.",
    add=_command("Add files of UTF-8 text, Markdown or HTML.", "corpus:add"),
    list=_command("List the documents of a corpus.", "corpus:list_"),
    search=_command("Find the chunks that answer a query, best first.", "corpus:search"),
    show=_command("Show a chunk, or a document chunk by chunk.", "corpus:show"),
    forget=_command("Erase a document, or the whole corpus, and print the receipt.", "corpus:forget"),
)
_LESSON = _group(
    "Single lessons: shown, signed, dropped, added.",
    "`muniment learn lessons` lists them, `muniment learn undo` takes a signature or a drop back.",
    show=_command("Show a lesson: its effect, its history and the runs it fitted.", "learn:show"),
    sign=_command("Answer for a lesson: it becomes active and stays so, and is still measured.", "learn:sign"),
    drop=_command("Stop using a lesson, with a reason.", "learn:drop"),
    add=_command("Add a lesson of your own; it is tried like any other.", "learn:add"),
)
_LEARN = _group(
    "Learn from verified runs, and use what was learnt.",
    lessons=_command("List what runs taught, with its measured effect.", "learn:lessons"),
    lesson=_LESSON,
    recall=_command("Show what earlier runs taught that fits a task.", "learn:recall"),
    fold=_command("Learn from a run by a verifier's verdict.", "learn:fold"),
    undo=_command("Undo an applied plan: each record as it was before.", "learn:undo"),
    rollout=_command("Have an agent try a task until it passes.", "learn:rollout"),
)
_RULES = _group(
    "Rules: how they come into force and leave it.",
    "Of a user, of an agent or, without either, of the whole tenant. A fold drafts a rule, and nobody obeys a draft. "
    "`advance` tests drafts, replays them and tries them on a share of runs; a person's signature promotes them. Any "
    "earlier rulebook can be put in force again.",
    list=_command("List the rules and drafts, and the stage of each.", "rules:list_"),
    show=_command("Show a rule: text, scope, figures, reports, history.", "rules:show"),
    add=_command("Write a rule of your own, for a limited time.", "rules:add"),
    submit=_command("Make a draft a temporary rule: alone, merged, or as an exception.", "rules:submit"),
    advance=_command("Take every draft and rule as far as evidence allows.", "rules:advance"),
    watch=_command("Show what the trials prove; take back what does harm.", "rules:watch"),
    report=_command("Print what a person reads before signing.", "rules:report"),
    promote=_command("Make a rule active.", "rules:promote"),
    retire=_command("Take a rule out of force.", "rules:retire"),
    rollback=_command("Put an earlier rulebook in force again.", "rules:rollback"),
)
_RESEARCH = _group(
    "Take a question to a checked report with your agents.",
    "Commands are listed in the order in which a run needs them; prompt and ingest are for each perspective. `status` "
    "shows the state of a run and what comes next.",
    init=_command("Start a run with a question.", "research:init"),
    route=_command("Choose the perspectives.", "research:route"),
    prompt=_command("Print what to hand to a perspective's agent, or to the writer of the report.", "research:prompt"),
    ingest=_command("Check and keep an agent's output.", "research:ingest"),
    pivot=_command("Decide on a second wave.", "research:pivot"),
    source=_command("Keep a page or a snippet that was read.", "research:source"),
    pack=_command("Settle the citations, check the claims and write the bounded pack.", "research:pack"),
    check=_command("Check a draft report against the pack.", "research:check"),
    status=_command("Show the state of a run and what comes next.", "research:status"),
)
_KEYS = _group(
    "API keys of a server. Kept as hashes; a token is shown once.",
    create=_command("Make a key and show its token, once.", "store:create_key"),
    list=_command("List the keys.", "store:list_keys"),
    rotate=_command("Give a key a new token; the old one holds a little longer.", "store:rotate_key"),
    revoke=_command("End a key at once.", "store:revoke_key"),
)
_STORE = _group(
    "The store: its users, its copies, its upkeep, the keys of its server.",
    tenants=_command("List the tenants of a store.", "store:tenants"),
    users=_command("List the users of a tenant and when they were seen.", "store:users"),
    overview=_command("Count what a tenant holds, and what waits.", "store:overview"),
    backup=_command("Copy a SQLite store into a file, while it is in use.", "store:backup"),
    restore=_command("Replace a store with a copy.", "store:restore"),
    upgrade=_command("Copy a store or a dump of version 0.1 into a new store.", "store:upgrade"),
    upkeep=_command("Index, embed and scrub what waits, shared with other processes.", "store:upkeep"),
    rebuild=_command("Compute every projection again from the ledger, and repair what differs.", "store:rebuild"),
    reembed=_command("Bring every turn to the present embedder.", "store:reembed"),
    scrub=_command("Rebuild the store's files without what was forgotten.", "store:scrub"),
    keys=_KEYS,
)
_CHECK = _group(
    "Check outputs, documents and commands, for CI.",
    "",
    "outputs",
    outputs=_command("Check OUTPUTs against the constraint file CONSTRAINTS (YAML).", "check:outputs", hidden=True),
    init=_command("Write a first file of constraints.", "check:init"),
    verify_output=_command("Verify an output: form, facts, a run.", "check:verify_output"),
    sandbox=_command("Run a command walled off, and report its outcome.", "check:sandbox"),
)
_EVAL = _group(
    "Ask questions whose answers are known, for people and CI.",
    "",
    "questions",
    questions=_command(
        "Ask QUESTIONS of a memory, and report what was missed and why.", "evals:questions", hidden=True
    ),
    init=_command("Write a first file of questions from a store's facts.", "evals:init"),
)
_SCHEMA = _group(
    "List, show or export the JSON Schemas (draft 2020-12) of the kinds.",
    list=_command("List every kind with the document it comes from.", "contracts:list_kinds"),
    show=_command("Print the JSON Schema of KIND; with --json, on one line.", "contracts:show_schema"),
    export=_command("Write one file for each kind into DIRECTORY.", "contracts:export_schemas"),
)

TREE: Mapping[str, Entry] = {
    "demo": _command("Run the main job on a sample, end to end.", "demo:demo"),
    "ingest": _command("Write a file of messages into the ledger.", "ingest:ingest"),
    "search": _command("Find what a user's memory holds for a query.", "memory:search"),
    "compose": _command("Compose a packet for a planner, tool or responder.", "packets:compose"),
    "explain": _command("Show what a build took, what it left out, and why.", "packets:explain"),
    "why": _command("Find the builds that gave a text to a model, and the events behind it.", "packets:why"),
    "replay": _command("Compose a kept build again: the same bytes.", "packets:replay"),
    "diff": _command("Show what changed between two builds, and why.", "packets:diff"),
    "facts": _command("List a user's facts and their sources.", "memory:facts"),
    "profile": _command("Print who a user is, in their own dated words.", "memory:profile"),
    "extract": _command("Have a model read users' messages for facts, within a budget.", "memory:extract_pending"),
    "forget": _command("Erase content everywhere and print the receipt.", "store:forget"),
    "verify": _command("Walk the hash chains and name the first broken link.", "store:verify"),
    "export": _command("Write a store, or one user's memory, to a file.", "moving:export"),
    "import": _command("Read an export, or another system's memory, into a store.", "moving:import_"),
    "serve": _command("Serve the store over HTTP, with its inspector and MCP.", "serve:serve"),
    "mcp": _command("Serve one user's memory to an agent over MCP (stdio).", "serve:mcp"),
    "proxy": _command("Put this memory in front of a model's server.", "serve:proxy"),
    "doctor": _command("Show what is installed, and what your settings ask for that is not.", "doctor:doctor"),
    "install": Entry("Put memory into a coding agent: its hooks and its MCP server.", f"{_HOSTS}:install"),
    "bill": _command("Show what a recorded conversation cost.", "billing:bill", hidden=True),
    "uninstall": Entry("Take out of a coding agent what install put in.", f"{_HOSTS}:uninstall", hidden=True),
    "hook": Entry("Take one event of a coding agent's hook; a host runs it.", f"{_HOSTS}:hook", hidden=True),
    "validate": _command("Check documents against their contract.", "contracts:validate"),
    "completion": _command("Print a completion script for bash, zsh or fish.", "demo:completion"),
    "run": _RUN,
    "memory": _MEMORY,
    "packet": _PACKET,
    "corpus": _CORPUS,
    "learn": _LEARN,
    "rules": _RULES,
    "research": _RESEARCH,
    "store": _STORE,
    "check": _CHECK,
    "eval": _EVAL,
    "schema": _SCHEMA,
}
"""The commands and groups by name, in the order of `--help`."""


def list_commands(entries: Mapping[str, Entry] = TREE, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Entry]:
    """Every command by its path."""
    found: dict[tuple[str, ...], Entry] = {}
    for name, entry in entries.items():
        found |= list_commands(entry.entries, (*path, name)) if entry.entries else {(*path, name): entry}
    return found


def load_command(name: str, entry: Entry) -> click.Command:
    """Load the command or group of an entry."""
    if entry.entries:
        about = f"{entry.summary}\n\n{entry.about}" if entry.about else entry.summary
        if entry.default:
            return DefaultGroup(name, entry.entries, entry.default, help=about)
        return TreeGroup(name, entry.entries, help=about)
    home, _, command_name = entry.home.partition(":")
    try:
        module = importlib.import_module(home)
    except ModuleNotFoundError as error:
        if error.name is None or not home.startswith(error.name):
            raise
        raise click.ClickException(f"the command {name!r} is not part of this build") from None
    command: click.Command = getattr(module, command_name).to_click(name, entry.summary)
    return command


class TreeGroup(click.Group):
    """A group whose commands are entries of the tree."""

    def __init__(self, name: str, entries: Mapping[str, Entry], **more: Any) -> None:
        super().__init__(name, **more)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = self.entries.get(cmd_name)
        return None if entry is None else load_command(cmd_name, entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        shown = {name: entry for name, entry in self.entries.items() if not entry.hidden}
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in shown.items():
            title = "Groups" if entry.entries and self.entries is TREE else "Commands"
            sections.setdefault(title, []).append((name, entry.summary))
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl(lines)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            close = get_close_matches(args[0], self.entries, n=1)
            meant = close or _path_of(args[0])
            suggestion = f" Did you mean {' '.join(meant)!r}?" if meant else ""
            raise click.UsageError(f"No such command {args[0]!r}.{suggestion}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self.entries.items()
            if name.startswith(incomplete) and not entry.hidden
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]


class DefaultGroup(TreeGroup):
    """A group that is also a command: an unknown command name is an argument of its default command."""

    def __init__(self, name: str, entries: Mapping[str, Entry], default: str, **more: Any) -> None:
        super().__init__(name, entries, context_settings={"ignore_unknown_options": True}, **more)
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in super().list_commands(ctx) if name != self.default]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in self.entries and args[0] != self.default:
            return super().resolve_command(ctx, args)
        close = get_close_matches(args[0], [name for name in self.entries if name != self.default], n=1, cutoff=0.75)
        if close and sum(not each.startswith("-") for each in args) == 1:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {close[0]!r}?", ctx)
        return "", self._default_command(ctx), args

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, " ".join(self._default_command(ctx).collect_usage_pieces(ctx)))
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="   or: ")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._default_command(ctx).format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._default_command(ctx).format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def _default_command(self, ctx: click.Context) -> click.Command:
        command = self.get_command(ctx, self.default)
        assert command is not None
        return command


def _path_of(name: str) -> tuple[str, ...]:
    """The path in the tree of a command with this name."""
    return next((path for path in list_commands() if path[-1] == name), ())


# -- the root -----------------------------------------------------------------------------------------


class Root(TreeGroup):
    """The root: unreadable requests are answered in the same shape as every other error."""

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
        except MunimentError as error:  # from a command that cannot be loaded here
            from muniment.surfaces.cli._command import report_error

            sys.exit(report_error(error, "--json" in given))
        sys.exit(code if isinstance(code, int) else 0)


def _refuse(error: click.UsageError, as_json: bool) -> int:
    from muniment.surfaces.cli._command import EXIT_USAGE, report_error

    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # a group alone; since click 8.2
        echo(error.format_message(), err=True)
        return EXIT_USAGE
    where = error.ctx.command_path.strip() if error.ctx is not None else "muniment"
    parameter = getattr(error, "param", None)
    path = f"$.{parameter.name}" if parameter is not None and parameter.name else None
    return report_error(InvalidInput(error.format_message(), path=path, hint=f"{where} --help"), as_json)


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    echo(f"muniment {__version__}")
    ctx.exit()


def _use_config(ctx: click.Context, _: click.Parameter, path: str | None) -> None:
    """Have everything that this command reads and starts use that file."""
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
    "muniment",
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
            help="Read this file instead of muniment.toml.",
        ),
    ],
)


def main() -> None:
    """The entry point of the installed script and of `python -m muniment`."""
    cli.main()
