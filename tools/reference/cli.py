"""docs/reference/cli.md: every command with its arguments and options, as click declares them."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from muniment.surfaces.cli._command import EXIT_FAILED, EXIT_USAGE
from muniment.surfaces.cli.check import EXIT_KILLED, EXIT_NO_SANDBOX, EXIT_TIMEOUT, EXIT_UNDECIDED
from muniment.surfaces.cli.main import TREE, DefaultGroup, Entry, cli
from reference.prose import bullet, headed, paragraphs, table

ABOUT = (
    """
`muniment COMMAND --help` says the same on the spot. Every command takes `--json`: one machine-readable document, or
JSON lines. Results go to stdout, errors to stderr with their [code](errors.md). What several commands take (`--db`,
`--tenant`, `--user`, `--agent`) can be [set once](settings.md): argument, then `MUNIMENT_*` environment, then
`muniment.toml`, then the default.

What people do every day is at the top, the rest in groups; `muniment GROUP --help` lists a group. `muniment completion
bash` (or `zsh`, `fish`) prints a script that completes commands, options and choices.""",
)
EXITS = {
    0: "Done; or what was checked holds.",
    EXIT_FAILED: "It failed, or what was checked does not hold: the error, or the result, says why.",
    EXIT_USAGE: "The question cannot be read: an unknown option, an argument that is wrong, a file that is not there.",
    EXIT_UNDECIDED: "`check verify-output`: it was to be run, and that decided nothing.",
    EXIT_TIMEOUT: "`check sandbox`: the time was up. Otherwise the exit code is that of the command that was run.",
    EXIT_NO_SANDBOX: "`check sandbox`: there is no sandbox, and nothing was run.",
    EXIT_KILLED: "`check sandbox`: a limit was exceeded.",
}


def page() -> str:
    return "\n".join([*headed("Command line", *ABOUT), *_exits(), *_contents(), *_commands()])


def _exits() -> Iterator[str]:
    yield "## Exit codes\n"
    yield from table(("code", ""), ((str(code), said) for code, said in EXITS.items()))


def _contents() -> Iterator[str]:
    for title, grouped in (("Commands", False), ("Groups", True)):
        yield f"## {title}\n"
        shown = [(name, entry.summary) for name, entry in _shown() if bool(entry.entries) is grouped]
        yield from table(("", ""), ((f"[`{name}`](#{name})", said) for name, said in shown))


def _shown() -> Iterator[tuple[str, Entry]]:
    return ((name, entry) for name, entry in TREE.items() if not entry.hidden)


def _commands() -> Iterator[str]:
    context = click.Context(cli, info_name="muniment")
    for name, _ in _shown():
        command = cli.get_command(context, name)
        assert command is not None
        yield f"### {name}\n"
        yield from _command(f"muniment {name}", command, context)


def _command(path: str, command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"{help_text(command)}\n"
    if isinstance(command, DefaultGroup):
        inner = command.get_command(context, command.default)
        assert inner is not None
        yield from _command(path, inner, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield f"#### {path.removeprefix('muniment ')} {name}\n"
            yield from _command(f"{path} {name}", inner, context)
        return
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    yield f"    {' '.join([path, '[OPTIONS]', *map(_argument, arguments)])}\n"
    yield from (_option(each) for each in command.params if isinstance(each, click.Option) and not each.hidden)
    yield ""


def help_text(command: click.Command) -> str:
    """What a command says of itself; a paragraph marked `\\b` keeps its lines."""
    told = []
    for paragraph in re.split(r"\n[ \t]*\n", paragraphs(command.help)):
        marked, _, lines = paragraph.partition("\n")
        told.append("\n".join(f"    {line}" for line in lines.splitlines()) if marked.strip() == "\b" else paragraph)
    return "\n\n".join(told)


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or (argument.name or "").upper()
    if argument.metavar:
        return name
    many = f"{name}..." if argument.nargs == -1 else name
    return many if argument.required else f"[{many}]"


def _option(option: click.Option) -> str:
    spelled = "/".join([", ".join(option.opts), *option.secondary_opts])
    takes = "" if option.is_flag or option.count else f" {_taken(option)}"
    said = option.help or ""
    repeats = "may be repeated" if option.multiple and "repeat" not in said else ""
    return bullet(f"{spelled}{takes}", ("needed" if option.required else "", repeats, _default(option)), said)


def _taken(option: click.Option) -> str:
    if option.metavar:
        return option.metavar
    if isinstance(option.type, click.Choice):
        return f"[{'|'.join(map(str, option.type.choices))}]"
    return option.type.name.upper().replace(" RANGE", "")


def _default(option: click.Option) -> str:
    """A default that is a plain value."""
    return f"default `{option.show_default}`" if isinstance(option.show_default, str) else ""
