"""`verify`, `forget` and `store …`: a store proven, copied, emptied, kept up."""

from __future__ import annotations

import errno
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from muniment.errors import InvalidInput, StorageFull, StoreDamaged
from muniment.surfaces.cli.calling import Call, Command
from muniment.surfaces.cli.parameters import Word
from muniment.surfaces.cli.rates import rates
from muniment.surfaces.cli.terminal import counted, one_line, progress_bar, visible, when

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.store.ledger import Receipt
    from muniment.store.reports import VerifyReport

__all__ = [
    "attention",
    "backup",
    "forget",
    "index",
    "overview",
    "rebuild",
    "receipt_lines",
    "reembed",
    "restore",
    "scrub",
    "tenants",
    "upgrade",
    "users",
    "verify",
]
__all__ += ["agree", "write_file"]


# -- who is there -------------------------------------------------------------------------------------


def _show_users(call: Call) -> Iterator[str]:
    found = list(call.answer)
    for user in found:
        held = f"{counted(user.sessions, 'session')}, {counted(user.runs, 'run')}, {counted(user.events, 'event')}"
        yield f"{user.user_id}  {held}, {when(user.first_seen_at)} to {when(user.last_seen_at)}"
    if not found:
        yield f"no users of {call.tenant} in {call.settings.shown_db}"


users = Command("memory.users", _show_users, document="users")
tenants = Command(
    "memory.tenants", lambda call: call.answer or [f"no tenants in {call.settings.shown_db}"], document="tenants"
)


def _show_overview(call: Call) -> Iterator[str]:
    held = call.answer
    for name in ("users", "sessions", "runs", "events", "builds"):
        more = " or more" if name in held.at_least else ""
        yield f"{name + ':':<10} {getattr(held, name)}{more}"
    if held.unindexed:
        yield f"{counted(held.unindexed, 'event')} wait for the index: `muniment store index`"
    if held.unembedded:
        yield f"{counted(held.unembedded, 'user')} without vectors for some turns: `muniment store index`"
    if held.under_way:
        yield f"{counted(held.under_way, 'piece')} of upkeep under way"
    for name, at in (("last run", held.last_run_at), ("last build", held.last_build_at)):
        if at is not None:
            yield f"{name}: {when(at)}"


overview = Command("memory.overview", _show_overview, document="overview")

_WAITING = {
    "run_locked": "LOCKED RUN",
    "canary_decided": "TRIAL DECIDED",
    "fact_disputed": "DISPUTED FACT",
    "candidate_waiting": "CANDIDATE",
    "scrub_due": "SCRUB DUE",
}


def _show_attention(call: Call) -> Iterator[str]:
    for each in call.answer:
        whose = each.user_id or each.agent_id or each.level or ""
        yield f"{_WAITING[each.kind]:<14} {each.id}  {when(each.at)}  {whose}  {one_line(each.text, 100)}"
    yield f"{counted(len(call.answer), 'thing')} waiting" if call.answer else "nothing waits"


attention = Command(
    "memory.attention",
    _show_attention,
    document="attention",
    words={"user_id": Word("What waits of one user (default: of the tenant).")},
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
        held = counted(report.sessions_held, "session")
        percent = 100 * report.sessions // max(1, report.sessions_held)
        of_all = f"more than {held}" if report.sessions_uncounted else f"{held} ({percent} %)"
        share = f"{report.sessions} of {of_all}"
        yield f"a sample, {share}: run it without --quick for all of them, and for what was derived"
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
    """Ask whether to go on, unless it was said already. What is asked about cannot be written over by its own name."""
    if not call.typed.get("yes"):
        click.confirm(visible(question), abort=True, err=True)


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
    agree(call, f"Forget {' of '.join(_forgotten_words(call))} in {call.settings.shown_db}? This cannot be undone.")
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


def _index(call: Call, ask: Callable[..., int]) -> int:
    with rates(quiet=call.as_json) as tell:
        return ask(progress=lambda count: tell("indexed", count))


index = Command(
    "memory.index",
    lambda call: [f"{counted(call.answer, 'turn')} indexed"],
    around=_index,
    left_out=("progress",),
    document=lambda call: {"turns": call.answer},
    about="Run it after `muniment ingest --bulk --index-later`, in as many processes as there are cores.",
)


# -- files -------------------------------------------------------------------------------------------


def write_file(path: Path, lines: Iterator[bytes]) -> int:
    """Write beside the target, for its owner alone, then rename: no half dump is ever called by its name."""
    part = path.with_name(path.name + ".part")
    count = 0
    try:
        part.unlink(missing_ok=True)
        with open(part, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
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


# -- copies and upgrades ------------------------------------------------------------------------------

_PG_DUMP = "use pg_dump and pg_restore: docs/guides/backup.md has the commands"


def _file(call: Call, verb: str) -> str:
    """The file of the store; an error where it has none."""
    from muniment.store.engines.opening import file_named

    path = file_named(call.settings.db)
    if path is None:
        raise InvalidInput(f"a store without a file of its own cannot be {verb} so", path="$.db", hint=_PG_DUMP)
    return path


class _Copied(NamedTuple):
    file: str
    schema: int
    size_bytes: int


def _backup(call: Call, file: str) -> _Copied:
    from muniment.store.engines._sqlite_files import copy_file

    number = copy_file(_file(call, "copied"), file)
    return _Copied(file, number, os.path.getsize(file))


def _show_copied(call: Call) -> Iterator[str]:
    done: _Copied = call.answer
    yield f"{done.file}: {done.size_bytes} bytes, schema {done.schema}"


backup = Command(
    view=_show_copied,
    function=_backup,
    on="settings",
    words={"file": Word(metavar="FILE")},
    about="A copy of a SQLite store as it is at one moment, while a server goes on with it. FILE is new, and appears "
    "under its name only when it is complete. The file of keys and the key for proofs lie elsewhere: keep them "
    "apart. For PostgreSQL, use pg_dump.",
)


class _Restored(NamedTuple):
    db: str
    schema: int
    kept: str | None


def _restore(call: Call, file: str) -> _Restored:
    from muniment.store.engines._sqlite_files import replace_file, schema_number

    path, number = _file(call, "restored"), schema_number(file)
    if os.path.exists(path):
        agree(call, f"Put {file} in the place of {path}?")
    return _Restored(path, number, replace_file(file, path))


def _check_restore(call: Call) -> None:
    if call.as_json and not call.typed.get("yes"):
        raise InvalidInput("with --json nobody can be asked", path="$.yes", hint="add --yes to restore")


def _show_restored(call: Call) -> Iterator[str]:
    done: _Restored = call.answer
    yield f"{done.db} is the copy now, schema {done.schema}"
    if done.kept is not None:
        yield f"what stood there is kept as {done.kept}"


restore = Command(
    view=_show_restored,
    function=_restore,
    on="settings",
    words={"file": Word(metavar="FILE")},
    more=YES,
    check=_check_restore,
    about="Stop the server first: a store that is in use is not replaced. What stood there is kept beside it. What was "
    "forgotten after the copy was made is back: forget it again.",
)


class _Upgraded(NamedTuple):
    db: str
    tenants: tuple[str, ...]
    written: dict[str, int]
    verified: VerifyReport
    retracted: int


def _upgrade(call: Call, old: str, new: str) -> _Upgraded:
    from muniment.handles.derived import check_dump
    from muniment.store.upgrade import new_store, read_old
    from muniment.surfaces.settings import open_store, shown_db

    tenants, written, retracted = [], Counter[str](), 0
    with read_old(old) as found, new_store(new) as target:
        with (
            open_store(replace(call.settings, db=target)) as memory,
            progress_bar("upgrading", None, quiet=call.as_json) as advance,
        ):
            for tenant in found:
                report = memory.import_(check_dump(tenant.lines), progress=advance)
                tenants.append(report.tenant_id)
                written.update(report.written)
                retracted += _retract_old_facts(memory, report.tenant_id)
            verified = memory.verify()
        if not verified.ok:
            raise StoreDamaged(
                f"{old} cannot be upgraded: {_first_fault(verified)}",
                path="$.old",
                hint="`muniment verify` of version 0.1 names what is damaged; restore a backup, or export user by user",
                details=verified.to_wire(),
            )
    return _Upgraded(shown_db(new), tuple(tenants), dict(written), verified, retracted)


def _retract_old_facts(memory: Memory, tenant_id: str) -> int:
    """Retract what rules of version 0.1 found, in a session of its own for each user who has such facts."""
    from muniment.memory.extracting import retract_old_facts

    users = [user.user_id for user in memory.store.users(tenant_id=tenant_id)]
    runs = (memory.run(tenant_id=tenant_id, user_id=user, session_id="upgrade-from-0.1") for user in users)
    return sum(retract_old_facts(run._writer()) for run in runs)


def _first_fault(report: VerifyReport) -> str:
    for link in report.broken:
        return f"{link.user_id}/{link.session_id} at seq {link.seq}: {link.reason}"
    return next(f"{each.kind} {each.id}: {each.reason}" for each in report.differing)


def _show_upgraded(call: Call) -> Iterator[str]:
    done: _Upgraded = call.answer
    rows = ", ".join(f"{count} {name}" for name, count in done.written.items() if count)
    yield f"{done.db}: {counted(len(done.tenants), 'tenant')} copied ({rows or 'nothing'})"
    yield f"verified: {counted(done.verified.entries, 'event')} in {counted(done.verified.sessions, 'session')}"
    if done.retracted:
        yield f"retracted: {counted(done.retracted, 'fact')} that rules of version 0.1 found"


upgrade = Command(
    view=_show_upgraded,
    function=_upgrade,
    on="nothing",
    words={"old": Word(metavar="OLD"), "new": Word(metavar="NEW")},
    about="OLD is a SQLite file or a dump of version 0.1, and stays as it is. NEW is a new file, or an address of "
    "PostgreSQL without a store. What was written, builds and receipts are copied and verified; if anything fails, "
    "nothing is left at NEW. Facts that the rules of version 0.1 found are retracted, unless today's rules find them "
    "too. API keys are not copied. A dump holds one tenant: bring in further ones with "
    "`muniment store import`.",
)
