"""`verify`, `forget`, `export`, `import` and `store …`: the store as a whole, proven, moved, emptied, kept up."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from muniment.errors import InvalidInput, StorageFull
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.terminal import Advance, counted, progress_bar, when

if TYPE_CHECKING:
    from muniment.store.ledger.records import Receipt
    from muniment.store.reports import ImportReport

__all__ = [
    "export",
    "forget",
    "import_",
    "rebuild",
    "receipt_lines",
    "reembed",
    "reseal",
    "scrub",
    "tenants",
    "users",
    "verify",
]
__all__ += ["YES", "agree", "write_file"]


# -- who is there -------------------------------------------------------------------------------------


def _show_users(call: Call) -> Iterator[str]:
    found = list(call.answer)
    for user in found:
        held = f"{counted(user.sessions, 'session')}, {counted(user.runs, 'run')}, {counted(user.events, 'event')}"
        yield f"{user.user_id}  {held}, {when(user.first_seen_at)} to {when(user.last_seen_at)}"
    if not found:
        yield f"no users of {call.tenant} in {call.settings.db}"


users = Command("memory.users", _show_users, document="users")
tenants = Command(
    "memory.tenants", lambda call: call.answer or [f"no tenants in {call.settings.db}"], document="tenants"
)


# -- verify -------------------------------------------------------------------------------------------


def _show_report(call: Call) -> Iterator[str]:
    report = call.answer
    forgotten = f", {report.forgotten} of them forgotten" if report.forgotten else ""
    events, sessions = counted(report.entries, "event"), counted(report.sessions, "session")
    yield f"{events} in {sessions} of {counted(report.tenants, 'tenant')}{forgotten}"
    if report.unreceipted:
        yield f"{report.unreceipted} of the forgotten name a receipt that is not in this store"
    if report.outdated:
        users = counted(report.outdated, "user")
        yield f"{users} indexed by another version of the analyzer: `muniment store rebuild` indexes them again"
    for link in report.broken:
        yield f"broken: {link.user_id}/{link.session_id} at seq {link.seq}: {link.reason} ({link.id or 'no event'})"
    for each in report.differing:
        yield f"differs: {each.kind} {each.id}: {each.reason}"
    if report.lacking:
        lacking = counted(report.lacking, "item")
        yield f"{lacking} that the ledger gives are not here yet: `muniment store rebuild` makes them"
    if report.unproven:
        yield f"{counted(report.unproven, 'proof')} of builds and receipts not made with the key of this store"
    if report.sampled:
        share = f"{report.sessions} of {counted(report.sessions_held, 'session')}"
        percent = 100 * report.sessions // max(1, report.sessions_held)
        yield f"a sample, {share} ({percent} %): run it without --quick for all of them, and for what was derived"
    if report.resume is not None:
        yield f"stopped here; go on with --resume {report.resume}"
    is_part = report.sampled or report.resume is not None
    holds = "every chain that was walked holds" if is_part else "every chain holds"
    if report.broken:
        yield f"{len(report.broken)} chains are broken"
    elif report.differing:
        yield f"{holds}; {len(report.differing)} derived are not what it gives: `muniment store rebuild`"
    else:
        yield holds


verify = Command(
    "memory.verify",
    _show_report,
    document=lambda call: {"ok": call.answer.ok, **call.answer.to_wire()},
    holds=lambda report: report.ok,
    words={
        "tenant_id": Word("One tenant (default: all of them)."),
        "quick": Word("A sample of the sessions, and nothing that was derived."),
        "entries_max": Word("Stop behind so many events, and say where to go on.", metavar="N"),
        "resume": Word("Go on where the last one stopped.", metavar="TEXT"),
    },
    about="Every session's hash chain, every blob, and what was derived; exit 1 and what does not hold.",
)


# -- forget and scrub ---------------------------------------------------------------------------------


def agree(call: Call, question: str) -> None:
    """Ask whether to go on, unless it was said already."""
    if not call.typed.get("yes"):
        click.confirm(question, abort=True, err=True)


def check_yes(call: Call) -> None:
    if call.as_json and not call.typed.get("yes"):
        raise InvalidInput("with --json nobody can be asked", path="$.yes", hint="add --yes to forget")


def _forgotten_words(call: Call) -> list[str]:
    """What is to be forgotten, in words."""
    names = {"event": "event", "fact": "fact", "session": "session", "user_id": "user"}
    what = [f"{kind} {call.typed[name]}" for name, kind in names.items() if name in call.typed]
    return [*what, f"the whole tenant {call.tenant}"] if call.typed.get("whole_tenant") else what


def _check_forget(call: Call) -> None:
    if not _forgotten_words(call):
        raise InvalidInput("say what to forget", hint="--event, --fact, --session, --user or --whole-tenant")
    check_yes(call)


def _forget(call: Call, ask: Callable[..., Receipt]) -> Receipt:
    agree(call, f"Forget {' of '.join(_forgotten_words(call))} in {call.settings.db}? This cannot be undone.")
    return ask(tenant=call.tenant if call.typed.get("whole_tenant") else None)


def receipt_lines(call: Call) -> Iterator[str]:
    """What was erased."""
    receipt: Receipt = call.answer
    yield f"receipt {receipt.receipt_id}"
    for name, count in sorted(receipt.counts.items()):
        yield f"  {name}: {count}"
    yield f"  the store's files: {receipt.note}"


YES = {"yes": Word("Do not ask.", flag=True)}
forget = Command(
    "memory.forget",
    receipt_lines,
    around=_forget,
    check=_check_forget,
    left_out=("tenant",),
    words={
        "event": Word("Forget one event.", metavar="ID"),
        "fact": Word("Forget one fact.", metavar="ID"),
        "session": Word("Forget a session (with --user where several users have one of that name).", metavar="ID"),
        "user_id": Word("Forget a user."),
    },
    more={"whole_tenant": Word("Forget everything of the tenant.", flag=True), **YES},
    about="And everything derived from it. Hashes and tombstones stay, so the chains still hold.",
)


def _show_scrubbed(call: Call) -> Iterator[str]:
    done = call.answer
    yield f"the store's files: {done.note}"
    yield f"{done.receipts} receipts had waited for it" if not done.due else "something is left: scrub again"


scrub = Command(
    "memory.scrub",
    _show_scrubbed,
    holds=lambda done: not done.due,
    about="Settles the receipts that waited for it; exit 1 where something is left to do. Needs to have the store to "
    "itself for a while: see docs/guides/privacy.md.",
)


# -- upkeep -------------------------------------------------------------------------------------------


def _show_rebuilt(call: Call) -> Iterator[str]:
    for name, value in call.answer.to_wire().items():
        yield f"{name.replace('_', ' ')}: {value}"


rebuild = Command("memory.rebuild", _show_rebuilt)


def _show_resealed(call: Call) -> Iterator[str]:
    report = call.answer
    yield f"{counted(report.resealed, 'seal')} brought to the key {report.key_id}, {report.kept} were there already"
    if report.locked:
        yield f"{counted(report.locked, 'seal')} made with a key that was not given"


reseal = Command(
    "memory.reseal",
    _show_resealed,
    holds=lambda report: not report.locked,
    about="After a new key was put before the old ones; exit 1 where a seal needs a key that was not given.",
)


def _reembed(call: Call, ask: Callable[..., int]) -> int:
    with progress_bar("embedding", None, quiet=call.as_json) as advance:
        return ask(progress=advance)


reembed = Command(
    "memory.reembed",
    lambda call: [f"{counted(call.answer, 'turn')} brought to {call.settings.embedder}"],
    around=_reembed,
    left_out=("progress",),
    document=lambda call: {"turns": call.answer, "embedder": call.settings.embedder},
    about="Run it after an embedder was added or changed (MUNIMENT_EMBEDDER).",
)


# -- export and import --------------------------------------------------------------------------------


class _Written(NamedTuple):
    file: str
    lines: int


def _check_export(call: Call) -> None:
    if "session_id" in call.typed and "user_id" not in call.typed:
        raise InvalidInput("a session is named within a user", path="$.user", hint="give --user as well")


def _export(call: Call, ask: Callable[..., Iterator[bytes]]) -> _Written | None:
    out = call.typed.get("out", "-")
    if out == "-":
        for line in ask():
            sys.stdout.buffer.write(line)
        return None
    with progress_bar("exporting", None, quiet=call.as_json) as advance:
        return _Written(out, write_file(Path(out), _ticking(ask(), advance)))


def _ticking(lines: Iterator[bytes], advance: Advance) -> Iterator[bytes]:
    for number, line in enumerate(lines, 1):
        if number % 1000 == 0:
            advance(1000)
        yield line


def write_file(path: Path, lines: Iterator[bytes]) -> int:
    """Write beside the target, then rename: no half dump is ever called by its name."""
    part = path.with_name(path.name + ".part")
    count = 0
    try:
        with part.open("wb") as file:
            for line in lines:
                file.write(line)
                count += 1
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        kind = StorageFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else InvalidInput
        raise kind(f"cannot write {path}: {error.strerror or error}", path="$.out") from None
    finally:
        part.unlink(missing_ok=True)
    return count


export = Command(
    "memory.export",
    lambda call: [f"{call.answer.lines} lines in {call.answer.file}"] if call.answer else [],
    around=_export,
    arguments={"out": "[OUT]"},
    more={"out": Word()},
    check=_check_export,
    about="Everything in a scope, to OUT (default: standard output). A file appears under its name only when it is "
    "complete.",
)


def _import(call: Call, file: str) -> ImportReport:
    from muniment.handles.derived import check_dump
    from muniment.surfaces.settings import open_store

    with tempfile.TemporaryDirectory(prefix="muniment-") as scratch:
        if file == "-":
            file = str(Path(scratch) / "dump")
            with Path(file).open("wb") as copy:
                shutil.copyfileobj(sys.stdin.buffer, copy)
        dump = check_dump(file)
        with open_store(call.settings) as mem, progress_bar("importing", dump.rows, quiet=call.as_json) as advance:
            return mem.import_(dump, progress=advance)


def _show_import(call: Call) -> Iterator[str]:
    report: ImportReport = call.answer
    written, skipped = sum(report.written.values()), sum(report.skipped.values())
    yield f"{written} rows written, {skipped} were there already (tenant {report.tenant_id})"


import_ = Command(
    "memory.import_",
    _show_import,
    function=_import,
    on="settings",
    about="FILE may be `-`: standard input. The whole dump is checked, chains included, before anything is written. "
    "Running it again continues where an interrupted import stopped.",
)
