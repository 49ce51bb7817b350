"""`demo` and `completion`: what a newcomer runs first, beside `doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from typing import Annotated, Literal

import click

from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word

__all__ = ["completion", "demo"]

# -- the demo -----------------------------------------------------------------------------------------


def _demo(call: Call, part: Annotated[Literal["rules"] | None, Word(metavar="[rules]")] = None) -> list[str]:
    if not call.as_json:
        _tell(part)
        return []
    with redirect_stdout(StringIO()) as printed:
        _tell(part)
    return click.unstyle(printed.getvalue()).splitlines()


def _tell(part: str | None) -> None:
    from muniment.surfaces.cli.demo.story import Calendar, show_main_job

    if part is None:
        show_main_job()
        return
    from muniment.surfaces.cli.demo.rules import show_rules

    show_rules(Calendar())


def _told_already(_: Call) -> Iterator[str]:
    return iter(())


demo = Command(
    "",
    _told_already,
    function=_demo,
    on="nothing",
    document=lambda call: {"lines": call.answer},
    about="Three chats of a person, the packets they give, and how these are traced, replayed, checked and forgotten. "
    "`muniment demo rules` shows the life of a rule: drafted, tested, tried, signed for, taken back.",
)


# -- completion ---------------------------------------------------------------------------------------


def _completion(_: Call, shell: Literal["bash", "zsh", "fish"]) -> str:
    from click.shell_completion import ShellComplete, get_completion_class

    from muniment.surfaces.cli.main import cli

    known = get_completion_class(shell)
    assert known is not None
    return ShellComplete.source(known(cli, {}, "muniment", "_MUNIMENT_COMPLETE"))


completion = Command(
    "",
    lambda call: [call.answer],
    function=_completion,
    on="nothing",
    document=lambda call: {"shell": call.typed["shell"], "script": call.answer},
    about='For example: `eval "$(muniment completion bash)"` in ~/.bashrc, the same with zsh in ~/.zshrc, or `muniment '
    "completion fish > ~/.config/fish/completions/muniment.fish`.",
)
