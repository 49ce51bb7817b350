"""`verify`, `forget` and `store …`: check, erase from, copy and maintain a store, and manage its server's API keys."""

from __future__ import annotations

import errno
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import click

from muniment.errors import InvalidInput, StorageFull, StoreDamaged
from muniment.surfaces.cli._command import Call, Command, OptionSpec
from muniment.surfaces.cli.terminal import counted, echo, progress_bar, visible, when

if TYPE_CHECKING:
    from muniment.handles.memory import Memory
    from muniment.handles.upkeep.records import UpkeepReport
    from muniment.store.ledger import Receipt
    from muniment.store.reports import VerifyReport
    from muniment.surfaces.http._keys import KeyRing

__all__ = [
    "YES",
    "backup",
    "check_yes",
    "confirm",
    "create_key",
    "forget",
    "list_keys",
    "overview",
    "rebuild",
    "receipt_lines",
    "reembed",
    "restore",
    "revoke_key",
    "rotate_key",
    "scrub",
    "tenants",
    "upgrade",
    "upkeep",
    "users",
    "verify",
    "write_file",
]


# -- contents -----------------------------------------------------------------------------------------

users = Command("memory.users", columns="user_id sessions runs events first_seen_at last_seen_at", noun="users")
tenants = Command("memory.tenants", noun="tenants")


def _show_overview(call: Call) -> Iterator[str]:
    held = call.answer
    for name in ("users", "sessions", "runs", "events", "builds"):
        more = " or more" if name in held.at_least else ""
        yield f"{name + ':':<10} {getattr(held, name)}{more}"
    if held.unindexed:
        yield f"{counted(held.unindexed, 'event')} wait for the index: `muniment store upkeep`"
    if held.unembedded:
        yield f"{counted(held.unembedded, 'user')} without vectors for some turns: `muniment store upkeep`"
    if held.under_way:
        yield f"{counted(held.under_way, 'piece')} of upkeep under way"
    for name, at in (("last run", held.last_run_at), ("last build", held.last_build_at)):
        if at is not None:
            yield f"{name}: {when(at)}"


overview = Command("memory.overview", _show_overview, noun="overview")


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
        yield f"{lacking} that follow from the ledger are missing: `muniment store rebuild` makes them"
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
        yield f"{holds}; {counted(len(report.differing), 'derived item')} differ from it: `muniment store rebuild`"
    else:
        yield holds


verify = Command(
    "memory.verify",
    _show_report,
    document=lambda call: {"ok": call.answer.ok, **call.answer.to_wire()},
    holds=lambda report: report.ok,
    options={
        "tenant_id": OptionSpec("One tenant (default: all of them)."),
        "quick": OptionSpec("A sample of the sessions, and nothing that was derived."),
        "entries_max": OptionSpec("Stop after this many events, and print where to go on.", metavar="N"),
        "resume": OptionSpec("Go on where the last one stopped.", metavar="TEXT"),
    },
    about="Every session's hash chain, every blob, and what was derived; exit 1 and what does not hold.",
)


# -- forget and scrub ---------------------------------------------------------------------------------


def confirm(call: Call, question: str) -> None:
    """Ask whether to go on, unless --yes is given. A stored name in the question cannot control the terminal."""
    if not call.typed.get("yes"):
        click.confirm(visible(question), abort=True, err=True)


def check_yes(call: Call) -> None:
    if call.as_json and not call.typed.get("yes"):
        raise InvalidInput("with --json nobody can be asked", path="$.yes", hint="add --yes")


def _forgotten_words(call: Call) -> list[str]:
    """The content to forget, in words."""
    names = {"event": "event", "fact": "fact", "session": "session", "user_id": "user"}
    what = [f"{kind} {call.typed[name]}" for name, kind in names.items() if name in call.typed]
    return [*what, f"the whole tenant {call.tenant}"] if call.typed.get("whole_tenant") else what


def _check_forget(call: Call) -> None:
    if not _forgotten_words(call):
        raise InvalidInput(
            "nothing to forget is named", path="$.forget", hint="--event, --fact, --session, --user or --whole-tenant"
        )
    check_yes(call)


def _forget(call: Call, ask: Callable[..., Receipt]) -> Receipt:
    confirm(call, f"Forget {' of '.join(_forgotten_words(call))} in {call.settings.shown_db}? This cannot be undone.")
    return ask(tenant=call.tenant if call.typed.get("whole_tenant") else None)


def receipt_lines(call: Call) -> Iterator[str]:
    receipt: Receipt = call.answer
    yield f"receipt {receipt.receipt_id}"
    for name, count in sorted(receipt.counts.items()):
        yield f"  {name}: {count}"
    yield f"  the store's files: {receipt.note}"


YES = {"yes": OptionSpec("Do not ask.", flag=True)}
forget = Command(
    "memory.forget",
    receipt_lines,
    around=_forget,
    check=_check_forget,
    left_out=("tenant",),
    options={
        "event": OptionSpec("Forget one event.", metavar="ID"),
        "fact": OptionSpec("Forget one fact.", metavar="ID"),
        "session": OptionSpec(
            "Forget a session (with --user where several users have one of that name).", metavar="ID"
        ),
        "user_id": OptionSpec("Forget a user."),
        "whole_tenant": OptionSpec("Forget everything of the tenant.", flag=True),
        **YES,
    },
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


def _upkeep(call: Call, ask: Callable[..., UpkeepReport]) -> Iterator[UpkeepReport]:
    every_s = call.typed.get("every")
    if every_s is None:
        with progress_bar("working", None, quiet=call.as_json) as advance:
            return iter([ask(progress=advance)])
    return _watched(call, every_s, **ask.keywords)  # type: ignore[attr-defined]


def _watched(
    call: Call, every_s: float, *, kinds: Any = None, lease_seconds: Any = 10.0, tenant_id: str | None = None
) -> Iterator[UpkeepReport]:
    from muniment.handles.upkeep.records import kinds_given, lease_given
    from muniment.handles.upkeep.watching import UpkeepWatch

    watch = UpkeepWatch(
        call.memory._ctx,
        kinds_given(kinds or ("index", "scrub"), tenant_id),
        lease_s=lease_given(lease_seconds),
        every_s=every_s,
        tenant_id=tenant_id,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: leases are given back
    try:
        yield from watch.reports()
    except KeyboardInterrupt:
        return


def _show_upkeep(call: Call) -> Iterator[str]:
    for done in call.answer:
        yield from _upkeep_lines(done)


def _upkeep_lines(done: UpkeepReport) -> Iterator[str]:
    parts = {
        "indexed": counted(done.index, "turn") if done.index else "",
        "read for facts": counted(done.extract, "turn") if done.extract else "",
        "settled by a scrub": counted(done.scrub, "receipt") if done.scrub else "",
    }
    done_here = [f"{count} {what}" for what, count in parts.items() if count]
    yield "; ".join(done_here) or "nothing waited"
    if done.taken_over:
        yield f"{counted(done.taken_over, 'piece')} taken over from a process that had ended or was held up"
    if done.lost:
        yield f"{counted(done.lost, 'piece')} lost to another process, since this one was held up"
    if done.held:
        yield f"other processes are at {counted(done.held, 'piece')}"


upkeep = Command(
    "memory.upkeep",
    _show_upkeep,
    around=_upkeep,
    left_out=("progress",),
    options={
        "kinds": OptionSpec(
            "What to do: index, scrub, extract; repeatable (default: all but extract).", "kind", "KIND",
            many=True,
        ),
        "lease_seconds": OptionSpec(
            "After how long without progress others take its work over (default: 10).", "lease-seconds",
            "SECONDS", click.FLOAT,
        ),
        "tenant_id": OptionSpec("One tenant (default: all of them)."),
        "every": OptionSpec("Go on, and look again after this time.", "", "SECONDS", click.FloatRange(0.1)),
    },
    document=lambda call: (done.to_wire() for done in call.answer),
    about="Run it in as many processes and on as many machines as you like: each piece of work is one process' at a "
    "time, by a lease in the store. One that is killed leaves its pieces to the others.",
)  # fmt: skip


rebuild = Command("memory.rebuild")


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


# -- files -------------------------------------------------------------------------------------------


def write_file(path: Path, lines: Iterator[bytes]) -> int:
    """Write a private temporary file, then rename it: a partial file never has the target's name."""
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
    """The file of the store; raises if it has none."""
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
    options={"file": OptionSpec(metavar="FILE")},
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
        confirm(call, f"Put {file} in the place of {path}?")
    return _Restored(path, number, replace_file(file, path))


def _show_restored(call: Call) -> Iterator[str]:
    done: _Restored = call.answer
    yield f"{done.db} is the copy now, schema {done.schema}"
    if done.kept is not None:
        yield f"the replaced file is kept as {done.kept}"


restore = Command(
    view=_show_restored,
    function=_restore,
    on="settings",
    options={"file": OptionSpec(metavar="FILE"), **YES},
    check=check_yes,
    about="Stop the server first: a store that is in use is not replaced. The replaced file is kept. What was "
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
    """Retract the facts that rules of version 0.1 found, in a separate session for each affected user."""
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
    options={"old": OptionSpec(metavar="OLD"), "new": OptionSpec(metavar="NEW")},
    about="OLD is a SQLite file or a dump of version 0.1, and stays as it is. NEW is a new file, or an address of "
    "PostgreSQL without a store. What was written, builds and receipts are copied and verified; if anything fails, "
    "nothing is left at NEW. Facts that the rules of version 0.1 found are retracted, unless today's rules find them "
    "too. API keys are not copied. A dump holds one tenant: bring in further ones with "
    "`muniment import`.",
)


# -- API keys -----------------------------------------------------------------------------------------

_MANY = click.IntRange(1)
_File = Annotated[str | None, OptionSpec("The file of keys (default: muniment.keys.json), or `store`.", "keys", "FILE")]
_KEY = {"key_id": "KEY_ID"}


@contextmanager
def _open_keys(call: Call, file: str | None) -> Iterator[KeyRing]:
    """Open the keys that the settings name, opening the store if they are kept there."""
    from muniment.core.outside.system import system_clock
    from muniment.surfaces.http._keys import KeyFile, are_stored, open_keys
    from muniment.surfaces.http.settings import load_server_settings
    from muniment.surfaces.settings import open_store

    named = load_server_settings({"keys": file}).keys
    if not are_stored(named, is_shared=call.settings.db.startswith(("postgresql://", "postgres://"))):
        yield KeyFile(named, system_clock)
        return
    with open_store(call.settings) as memory:
        yield open_keys(named, memory._ctx.engine, system_clock)


def _create_key(
    call: Call,
    name: str,
    *,
    tenant: Annotated[str, OptionSpec("The tenant it is for; '*' for all.", metavar="ID")],
    user: Annotated[str | None, OptionSpec("The one user it is for.", metavar="ID")] = None,
    access: Annotated[
        Literal["read", "write", "admin"], OptionSpec("What it may do; each includes the one before.")
    ] = "write",
    expires: Annotated[str | None, OptionSpec("How long it holds, such as 90d or 12h.", metavar="TIME")] = None,
    rate: Annotated[int | None, OptionSpec("Requests a minute.", metavar="N", type=_MANY)] = None,
    body_max: Annotated[int | None, OptionSpec("The largest body it may send.", metavar="BYTES", type=_MANY)] = None,
    seconds_max: Annotated[
        int | None, OptionSpec("How long one of its requests may take.", metavar="SECONDS", type=_MANY)
    ] = None,
    file: _File = None,
) -> Any:
    from muniment.surfaces.http._keys import lifetime

    if tenant == "*" and user is not None:
        raise InvalidInput("a user is one of a tenant's", path="$.user", hint="name the tenant too")
    with _open_keys(call, file) as keys:
        return keys.create(
            name,
            tenant=tenant,
            user=user,
            access=access,
            lasts=None if expires is None else lifetime(expires, "$.expires"),
            requests_per_minute=rate,
            body_bytes_max=body_max,
            request_seconds_max=seconds_max,
        )


def _list_keys(call: Call, *, file: _File = None) -> list[dict[str, Any]]:
    with _open_keys(call, file) as keys:
        return [key.public_fields() for key in keys.list()]


def _rotate_key(
    call: Call,
    key_id: str,
    *,
    overlap: Annotated[str, OptionSpec("How long the old token still holds.", metavar="TIME")] = "24h",
    file: _File = None,
) -> Any:
    from muniment.surfaces.http._keys import lifetime

    with _open_keys(call, file) as keys:
        return keys.rotate(key_id, lifetime(overlap, "$.overlap"))


def _revoke_key(call: Call, key_id: str, *, file: _File = None) -> Any:
    with _open_keys(call, file) as keys:
        return keys.revoke(key_id)


def _show_key(call: Call) -> Iterator[str]:
    yield call.answer.token
    echo(f"key {call.answer.key.key_id}: keep the token, it is not shown again", err=True)


def _key_document(call: Call) -> dict[str, Any]:
    return {"key": call.answer.key.public_fields(), "token": call.answer.token}


create_key = Command(view=_show_key, function=_create_key, on="settings", document=_key_document)
list_keys = Command(
    function=_list_keys,
    on="settings",
    columns="key_id tenant user access expires_at revoked_at name",
    noun="keys",
    document=lambda call: iter(call.answer),
)
rotate_key = Command(view=_show_key, function=_rotate_key, on="settings", arguments=_KEY, document=_key_document)
revoke_key = Command(
    view=lambda call: [f"the key {call.answer.key_id} ({call.answer.name}) is revoked"],
    function=_revoke_key,
    on="settings",
    arguments=_KEY,
    document=lambda call: call.answer.public_fields(),
)
