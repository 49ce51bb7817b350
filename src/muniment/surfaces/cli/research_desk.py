"""What the commands of `muniment research` share: a run opened, answers in one shape, hints that name commands."""

from __future__ import annotations

import functools
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from muniment.errors import InvalidInput, MunimentError
from muniment.surfaces.cli.options import db_option, json_option, tenant_option
from muniment.surfaces.cli.output import emit_json, handles_errors
from muniment.surfaces.settings import load_settings, open_store

if TYPE_CHECKING:
    from muniment.handles.study import Study

__all__ = [
    "Desk",
    "dir_option",
    "harmless",
    "in_words_of_commands",
    "named_counts",
    "on_run",
    "revision_option",
    "run_argument",
    "where_given",
]

_PROGRAM = "muniment research"
_COUNT = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class Desk:
    """A run that is open, and how to answer."""

    study: Study
    as_json: bool
    where: tuple[str, ...] = ()
    """The options that name its store, as they were given."""

    def line(self, command: str, *rest: str) -> str:
        """A command on this run, to be typed as it stands. Words in capitals are for the reader to fill in."""
        return shlex.join(["muniment", "research", command, self.study.run_id, *rest, *self.where])

    def answer(self, **told: Any) -> None:
        """The one JSON document of a command."""
        manifest = self.study.manifest()
        emit_json({"run_id": manifest.run_id, "revision": manifest.revision, "stage": manifest.stage, **told})


# -- options ------------------------------------------------------------------------------------------

run_argument = click.argument("run_id", metavar="RUN")
revision_option = click.option(
    "--revision", type=click.IntRange(1), metavar="N", help="Only if the run is at this revision; else nothing is done."
)
dir_option = click.option("--dir", "directory", metavar="PATH", help="Where its files lie, if they were moved.")


def where_given(**named: str | None) -> tuple[str, ...]:
    """Options as words of a command line, those that were given."""
    return tuple(word for name, value in named.items() if value is not None for word in (f"--{name}", value))


def on_run(command: Callable[..., None]) -> Callable[..., None]:
    """A command on one run, with --db, --tenant, --dir, --json. It is called with the `Desk` first."""

    @handles_errors
    @functools.wraps(command)
    def opened(
        *, run_id: str, db: str | None, tenant: str | None, directory: str | None, as_json: bool, **given: Any
    ) -> None:
        settings = load_settings({"db": db, "tenant": tenant})
        where = where_given(db=db, tenant=tenant, dir=directory)
        with in_words_of_commands(run_id), open_store(settings, must_exist=True) as mem:
            study = mem.open_research(run_id, directory=directory, tenant_id=settings.tenant)
            command(Desk(study, as_json, where), **given)

    return db_option(tenant_option(dir_option(json_option(opened))))


def named_counts(given: Sequence[str], option: str) -> dict[str, int]:
    """`name=3` as a name and its count."""
    counts: dict[str, int] = {}
    for each in given:
        name, _, count = each.partition("=")
        if not name or not _COUNT.fullmatch(count):
            raise InvalidInput(
                f"{each!r:.80} is not a name and a count", path=f"$.{option}", hint=f"write --{option} search_calls=3"
            )
        counts[name] = int(count)
    return counts


_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


def harmless(text: str) -> str:
    """A text of several lines for a terminal: nothing in it can move the cursor or change colours."""
    return text.translate(_CONTROLS)


# -- hints that name commands -------------------------------------------------------------------------

_PHRASES: dict[str, str] = {
    "resume() (`muniment research resume`) writes": "`resume` writes",
    "resume() writes": "`resume` writes",
    "pivot() first": "`pivot` first",
    "open_research(run_id) takes it up again": "`status` shows how it stands",
    "mem.runs() lists those there are": "`list` names the research runs of this store",
    "leave objective out to take the run up again; start a new run for another objective": (
        "`status` shows how it stands; without --run-id a new run gets an id of its own"
    ),
    "start one with a question": "`list` names the runs of this store, `init` starts one",
    "open_research(run_id, directory=…)": "--dir PATH",
    "none yet: route first": "none yet: `route` first",
    "give it up with a reason": "`give-up` with a reason",
    "start another run, or accept": "`init` starts another run; or accept",
}
_NAMED = re.compile(r"`([a-z-]+)`")
_OF_NO_RUN = ("init", "list")


@contextmanager
def in_words_of_commands(run_id: str) -> Iterator[None]:
    """Hints of the library, said for who types commands on this run."""
    try:
        yield
    except MunimentError as error:
        error.hint = _translate(error.hint, run_id)
        raise


def _translate(hint: str, run_id: str) -> str:
    from muniment.surfaces.cli.research import COMMANDS

    for phrase, said in _PHRASES.items():
        hint = hint.replace(phrase, said)

    def spell(found: re.Match[str]) -> str:
        name = found[1]
        if name not in COMMANDS:
            return found[0]
        return f"`{_PROGRAM} {name}`" if name in _OF_NO_RUN else f"`{_PROGRAM} {name} {shlex.quote(run_id)}`"

    return _NAMED.sub(spell, hint)
