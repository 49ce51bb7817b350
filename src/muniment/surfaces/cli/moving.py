"""`export` and `import`: a store's dump, a user's memory in a portable file, and imports from other systems."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

from muniment.core.scope import DEFAULT_TENANT
from muniment.errors import InvalidInput
from muniment.moving.portable import ONE_USER, SYSTEMS
from muniment.surfaces.cli._command import Call, Choice, Command, OptionSpec
from muniment.surfaces.cli.store import write_file
from muniment.surfaces.cli.terminal import Advance, one_line, progress_bar
from muniment.surfaces.settings import Settings, open_store

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.moving.portable import MoveReport, System
    from muniment.store.reports import ImportReport

__all__ = ["export", "import_"]

_DUMP, _PORTABLE = "dump", "portable"
_LEFT_SHOWN = 20

# -- export -------------------------------------------------------------------------------------------


class _Written(NamedTuple):
    file: str
    lines: int


def _check_export(call: Call) -> None:
    form = call.typed.get("format", _DUMP)
    if "session_id" in call.typed and "user_id" not in call.typed:
        raise InvalidInput("a session is named within a user", path="$.user", hint="give --user as well")
    if form != _DUMP and "user_id" not in call.typed:
        raise InvalidInput("a portable file is one user's memory", path="$.user", hint="give --user")
    if form != _DUMP and "session_id" in call.typed:
        raise InvalidInput("a portable file is of all sessions", path="$.session", hint="leave --session out")


def _export(call: Call, ask: Callable[..., Iterator[bytes]]) -> _Written | None:
    out, form = call.typed.get("out", "-"), call.typed.get("format", _DUMP)
    if form == _DUMP:
        lines = ask()
    else:
        lines = call.memory.store.export_memory(user_id=call.typed["user_id"], tenant_id=call.tenant)
    if out == "-":
        for line in lines:
            sys.stdout.buffer.write(line)
        return None
    with progress_bar("exporting", None, quiet=call.as_json) as advance:
        return _Written(out, write_file(Path(out), _ticking(lines, advance)))


def _ticking(lines: Iterator[bytes], advance: Advance) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        if number % 1000 == 0:
            advance(1000)
        yield line


export = Command(
    "memory.export",
    lambda call: [f"{call.answer.lines} lines in {call.answer.file}"] if call.answer else [],
    around=_export,
    arguments={"out": "[OUT]"},
    options={
        "out": OptionSpec(),
        "format": OptionSpec(
            "A dump of everything (dump), or one user's memory (portable).",
            metavar="FORMAT",
            type=Choice((_DUMP, _PORTABLE)),
        ),
    },
    check=_check_export,
    about="Everything in a scope, to OUT (default: standard output). A file appears under its name only when it is "
    "complete. With --format portable, one user's memory in the documented neutral file, with evidence.",
)


# -- import -------------------------------------------------------------------------------------------


def _import(
    call: Call,
    files: Annotated[tuple[str, ...], OptionSpec(metavar="FILE…")],
    *,
    source: Annotated[
        str | None, OptionSpec("What wrote it; without this, a dump of muniment's.", "from", "SYSTEM", Choice(SYSTEMS))
    ] = None,
    user_id: Annotated[str | None, OptionSpec("Whose memory it becomes.")] = None,
    source_user: Annotated[
        str | None, OptionSpec("Who that is in the source (default: the same).", metavar="ID")
    ] = None,
    agent_id: Annotated[str | None, OptionSpec("The agent of what names none (default: the setting `agent`).")] = None,
    tenant_id: Annotated[str | None, OptionSpec("The tenant.")] = None,
    dry_run: Annotated[bool, OptionSpec("Only say what would be written, and what cannot be carried.")] = False,
) -> ImportReport | MoveReport:
    if source is None:
        return _import_dump(
            call, files, named={"user": user_id, "source-user": source_user, "dry-run": dry_run or None}
        )
    _ = agent_id, tenant_id  # read by the settings
    whose = user_id or (call.settings.user if source in ONE_USER else None) or None
    with (
        _on_disk(files) as paths,
        _opened(call.settings, lambda: _check(source, paths, whose, source_user), dry_run=dry_run) as mem,
        progress_bar("importing", None, quiet=call.as_json) as advance,
    ):
        return mem.store.import_from(
            cast("System", source),
            paths,
            user_id=whose,
            source_user=source_user,
            agent_id=call.settings.agent,
            dry_run=dry_run,
            progress=advance,
            tenant_id=call.settings.tenant or DEFAULT_TENANT,
        )


def _import_dump(call: Call, files: Sequence[str], named: dict[str, object]) -> ImportReport:
    from muniment.handles.derived import check_dump

    for option, value in named.items():
        if value is not None:
            message = f"a dump is read as it is: --{option} is for --from"
            raise InvalidInput(message, path=f"$.{option}", hint=f"--from one of {', '.join(SYSTEMS)}")
    if len(files) != 1:
        raise InvalidInput("one dump is read at a time", path="$.files")
    with _on_disk(files) as (file,):
        dump = check_dump(file)
        with open_store(call.settings) as mem, progress_bar("importing", dump.rows, quiet=call.as_json) as advance:
            return mem.import_(dump, progress=advance)


@contextmanager
def _on_disk(files: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the files as paths that can be read twice: standard input is copied first."""
    with tempfile.TemporaryDirectory(prefix="muniment-") as scratch:
        copy = Path(scratch) / "stdin.json"
        if "-" in files:
            with copy.open("wb") as out:
                shutil.copyfileobj(sys.stdin.buffer, out)
        yield tuple(str(copy) if file == "-" else file for file in files)


def _check(system: str, paths: Sequence[str], user_id: str | None, source_user: str | None) -> None:
    from muniment.moving.importing import check_source
    from muniment.moving.sources import open_source

    check_source(open_source(system, paths, source_user or user_id), user_id)


@contextmanager
def _opened(settings: Settings, check: Callable[[], None], *, dry_run: bool) -> Iterator[Memory]:
    """Open the store. A missing store is created only for valid input, and not for a dry run."""
    is_new = "://" not in settings.db and settings.db != ":memory:" and not Path(settings.db).exists()
    if is_new and dry_run:
        settings = replace(settings, db=":memory:")
    elif is_new:
        check()
    with open_store(settings) as mem:
        yield mem


def _show_import(call: Call) -> Iterator[str]:
    from muniment.moving.portable import MoveReport

    if isinstance(call.answer, MoveReport):
        yield from _show_move(call.answer)
        return
    report: ImportReport = call.answer
    written, skipped = sum(report.written.values()), sum(report.skipped.values())
    yield f"{written} rows written, {skipped} were there already (tenant {report.tenant_id})"
    if report.proven:
        made = "1 proof was" if report.proven == 1 else f"{report.proven} proofs were"
        yield f"{made} made anew, of builds and receipts: a dump brings none, compare its digest"


def _show_move(report: MoveReport) -> Iterator[str]:
    verb = "would be written" if report.dry_run else "written"
    whose = f" for {', '.join(map(one_line, report.users[:8]))}" if report.users else ""
    yield f"{_told(report.written)} {verb}{whose}"
    if report.known:
        yield f"{_told(report.known)} were here already"
    if report.changed:
        yield f"{report.changed} of what is new replace an earlier version"
    if report.flagged:
        yield f"{report.flagged} read like instructions: kept, and not quoted"
    total = sum(report.left_out_counts.values())
    if not total:
        yield "everything was carried"
        return
    yield f"{total} not carried, {report.losses} of them with somebody's words in them:"
    shown = sorted(report.left_out, key=lambda each: not each.is_loss)
    for each in shown[:_LEFT_SHOWN]:
        yield f"  {one_line(each.path, 100)}  {one_line(each.kind, 40)}: {one_line(each.why)}"
    if total > _LEFT_SHOWN:
        yield f"  and {total - min(len(shown), _LEFT_SHOWN)} more: --json names each"


_NOUNS = {"messages": "message", "memories": "memory", "facts": "fact", "summaries": "summary"}


def _told(counts: dict[str, int]) -> str:
    return (
        ", ".join(f"{count} {_NOUNS.get(kind, kind) if count == 1 else kind}" for kind, count in counts.items())
        or "nothing"
    )


import_ = Command(
    "memory.import_",
    _show_import,
    function=_import,
    on="settings",
    holds=lambda answer: getattr(answer, "is_complete", True),
    about="FILE may be `-`: standard input. Without --from it is a dump of muniment's: the whole of it is checked, "
    "chains included, before anything is written. With --from it is what another system wrote: its files, folder or "
    "archive. Everything is read to its end before anything is written, nothing counts as observed, and the exit code "
    "is 1 where something with words in it could not be carried. Running it again writes nothing twice.",
)
