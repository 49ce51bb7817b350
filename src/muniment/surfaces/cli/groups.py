"""Groups of commands that are named in a tree and loaded when called; and what a slip was meant to be."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import click
from click.shell_completion import CompletionItem

from muniment.surfaces.cli.tree import MOVED, TREE, Entry

__all__ = ["DefaultGroup", "TreeGroup"]

_HOME = "muniment.surfaces.cli.commands"


class TreeGroup(click.Group):
    """A group whose commands are entries of the tree. `--help` and completion read the entries and load nothing."""

    def __init__(self, path: tuple[str, ...], entries: Mapping[str, Entry], **more: Any) -> None:
        super().__init__(path[-1] if path else "muniment", **more)
        self.path, self.entries = path, entries

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = self.entries.get(cmd_name)
        return None if entry is None else made((*self.path, cmd_name), entry)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        shown = {name: entry for name, entry in self.entries.items() if not entry.hidden}
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, entry in shown.items():
            title = "Groups" if entry.entries and not self.path else "Commands"
            sections.setdefault(title, []).append((name, entry.summary))
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl(lines)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.entries and not args[0].startswith("-"):
            raise click.UsageError(f"No such command {args[0]!r}.{self._meant(args[0])}", ctx)
        return super().resolve_command(ctx, args)

    def _meant(self, name: str) -> str:
        """What was meant: a name that has moved, one that is like it, or one that stands in another group."""
        moved = MOVED.get(name) if not self.path else None
        if moved is not None:
            return f" `{name}` is now `{moved}`."
        close = get_close_matches(name, self.entries, n=1)
        meant = _path_of(name, TREE, ()) or close
        return f" Did you mean {' '.join(meant)!r}?" if meant else ""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        named = [
            CompletionItem(name, help=entry.summary)
            for name, entry in self.entries.items()
            if name.startswith(incomplete) and not entry.hidden
        ]
        return [*named, *click.Command.shell_complete(self, ctx, incomplete)]


class DefaultGroup(TreeGroup):
    """A group that is a command too: whatever names no command of it is an argument of the one it stands for."""

    def __init__(self, path: tuple[str, ...], entries: Mapping[str, Entry], default: str, **more: Any) -> None:
        super().__init__(path, entries, context_settings={"ignore_unknown_options": True}, **more)
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
        return "", self._own(ctx), args

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_usage(ctx.command_path, " ".join(self._own(ctx).collect_usage_pieces(ctx)))
        formatter.write_usage(ctx.command_path, "COMMAND [ARGS]...", prefix="   or: ")

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._own(ctx).format_help_text(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self._own(ctx).format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def _own(self, ctx: click.Context) -> click.Command:
        """The command that it stands for."""
        command = self.get_command(ctx, self.default)
        assert command is not None
        return command


def made(path: tuple[str, ...], entry: Entry) -> click.Command:
    """The command or group that an entry names."""
    if entry.entries:
        told = {"help": f"{entry.summary}\n\n{entry.about}" if entry.about else entry.summary}
        if entry.default:
            return DefaultGroup(path, entry.entries, entry.default, **told)
        return TreeGroup(path, entry.entries, **told)
    module, _, name = entry.home.partition(":")
    home = module if "." in module else f"{_HOME}.{module}"
    try:
        found = getattr(importlib.import_module(home), name)
    except ModuleNotFoundError as error:
        if error.name is None or not home.startswith(error.name):
            raise
        raise click.ClickException(f"the command {path[-1]!r} is not part of this build") from None
    command: click.Command = found.made(path, entry.summary)
    return command


def _path_of(name: str, entries: Mapping[str, Entry], path: tuple[str, ...]) -> tuple[str, ...]:
    """Where in the tree a command of this name stands."""
    for each, entry in entries.items():
        if path and each == name:
            return (*path, each)
        below = _path_of(name, entry.entries, (*path, each))
        if below:
            return below
    return ()
